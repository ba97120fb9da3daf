// `chorale data` makes and shows training data.
//
//   tokenize TEXT     writes the text's tokens in llm.c's file format     train-bpe TEXT   learns a vocabulary from the text
//   show FILE.bin     shows the contents of a token file                  floor            prints the lowest loss that is
//                                                                                          possible on synthetic data
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "experiments/common/advice.hpp"
#include "experiments/common/command.hpp"
#include "experiments/common/each.hpp"
#include "src/base/error.hpp"
#include "src/base/progress.hpp"
#include "src/base/text.hpp"
#include "src/data/bpe.hpp"
#include "src/data/synthetic.hpp"
#include "src/data/token_file.hpp"
#include "src/record/run_folder.hpp"

namespace chorale {
namespace {

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

class Data final : public Command {
 public:
  void declare(Options& options) override {
    options.add_positional("action", words_, "tokenize TEXT, train-bpe TEXT, show FILE.bin, or floor")
        .words("ACTION FILE")
        .suggest(names());
    options.add("out", out_, "the file to write; default: the name of the text, ending in .bin or .bpe").words("FILE");
    options
        .add("tokenizer", tokenizer_,
             "bytes, a file of train-bpe, or a Hugging Face model folder; by default tokenize uses bytes, show prints no "
             "text")
        .words("bytes|FILE|DIR");
    options.add("vocabulary", vocabulary_, "size of the vocabulary to learn, or of the synthetic language")
        .range(32, 1 << 24);
    options.add("seed", seed_, "seed of the synthetic language").range(0, 1e15);
    options.add("sequence", sequence_, "tokens per sample, for the floor").range(1, 1 << 20);
  }

  void check(const Launch&) override {
    const std::vector<std::string> known = names();
    const std::string action = words_.empty() ? "" : words_[0];
    row_ = std::find_if(std::begin(actions), std::end(actions), [&](const Action& row) { return row.name == action; });
    if (row_ == std::end(actions)) {
      usage_error(action.empty() ? "data needs an action" : fmt::format("unknown action \"{}\"", escape_control(action)),
                  "the actions are " + join(known, ", "),
                  did_you_mean(action, known, "for example: " + program() + " data floor"));
    }
    const std::size_t wanted = row_->wants_file ? 2 : 1;
    if (words_.size() != wanted)
      usage_error(fmt::format("data {} takes {}", action, row_->wants_file ? "one file" : "no file"),
                  fmt::format("{} were given", words_.size() - 1),
                  fmt::format("{} data {}{}", program(), action, row_->wants_file ? " FILE" : ""));
    if (!row_->ending) return;
    if (out_.empty()) out_ = std::filesystem::path(words_[1]).replace_extension(row_->ending).string();
    std::error_code missing;
    if (std::filesystem::equivalent(out_, words_[1], missing))
      usage_error("the result would overwrite its source", out_, "name another file with --out");
    require_writable_file(out_, "--out", false);
  }

  int run(Session& session) override {
    (this->*row_->work)(session);
    return 0;
  }

 private:
  struct Action {
    std::string_view name;
    bool wants_file;
    const char* ending;  // extension of the file that the action writes; null if it writes none
    void (Data::*work)(Session&);
  };
  static const Action actions[4];

  static std::vector<std::string> names() { return names_of_rows(actions); }

  void tokenize(Session& session) {
    const Tokenizer tokenizer = Tokenizer::named(tokenizer_.empty() ? "bytes" : tokenizer_);
    const MappedFile file(words_[1]);
    const std::string_view text = text_of(file);
    std::vector<std::int32_t> tokens;
    {
      Progress progress = session.progress("tokenize, bytes", std::ssize(text));
      tokens = tokenizer.encode(text, [&](std::size_t done) { progress.update(static_cast<std::int64_t>(done)); });
    }
    tokens.insert(tokens.begin(), tokenizer.opening().begin(), tokenizer.opening().end());
    write_tokens(out_, tokens);
    fmt::print("{}: {} tokens from {}, {:.2f} bytes per token\n", out_, tokens.size(), human_bytes(std::ssize(text)),
               static_cast<double>(text.size()) / static_cast<double>(tokens.size()));
  }

  void train(Session& session) {
    const MappedFile file(words_[1]);
    Tokenizer tokenizer;
    {
      Progress progress = session.progress("train-bpe, merges", vocabulary_ - 256);
      tokenizer = train_bpe(text_of(file), vocabulary_, [&](std::int64_t done) { progress.update(done); });
    }
    const std::string json = tokenizer.json();
    write_whole(out_, std::as_bytes(std::span(json)));
    fmt::print("{}: {} tokens\n", out_, tokenizer.vocabulary());
    if (tokenizer.vocabulary() < vocabulary_)
      fmt::print("no other pair of tokens occurs twice in {}; a vocabulary of {} needs a longer text\n", words_[1],
                 vocabulary_);
  }

  void show(Session&) {
    const StoredTokens source = open_tokens(words_[1]);
    std::optional<Tokenizer> tokenizer;
    if (!tokenizer_.empty()) source.require_below((tokenizer = Tokenizer::named(tokenizer_))->vocabulary());
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(source.count()));
    source.tokens(0, tokens);
    std::vector<std::int64_t> seen(static_cast<std::size_t>(source.vocabulary()));
    for (const std::int32_t token : tokens) ++seen[static_cast<std::size_t>(token)];
    double nats = 0;
    for (const std::int64_t n : seen)
      if (n > 0) nats -= static_cast<double>(n) * std::log(static_cast<double>(n) / static_cast<double>(tokens.size()));
    std::vector<std::int32_t> order(seen.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return seen[static_cast<std::size_t>(a)] > seen[static_cast<std::size_t>(b)]; });
    order.resize(
        std::min<std::size_t>(10, order.size() - static_cast<std::size_t>(std::count(seen.begin(), seen.end(), 0))));

    fmt::print("{}\n  tokens        {}\n  distinct      {}\n  largest       {}: a model needs a vocabulary of {} or more\n",
               source.name(), tokens.size(), std::count_if(seen.begin(), seen.end(), [](auto n) { return n > 0; }),
               source.vocabulary() - 1, source.vocabulary());
    fmt::print("  entropy       {:.4f} nats per token, if tokens were drawn independently\n",
               nats / static_cast<double>(tokens.size()));
    fmt::print("  most frequent\n");
    for (const std::int32_t token : order)
      fmt::print("  {:>10}  {:>10}{}\n", token, seen[static_cast<std::size_t>(token)],
                 tokenizer ? "  \"" + escape_control(tokenizer->bytes_of(token)) + '"' : "");
    tokens.resize(std::min<std::size_t>(tokens.size(), 32));
    fmt::print("  first         {}\n", fmt::join(tokens, " "));
    if (tokenizer) fmt::print("  as text       \"{}\"\n", escape_control(tokenizer->decode(tokens)));
  }

  void floor(Session&) {
    const SyntheticLanguage language(vocabulary_, static_cast<std::uint64_t>(seed_));
    fmt::print("the synthetic language: {} tokens, seed {}; {} titles, {} classes\nnats per token\n", vocabulary_, seed_,
               language.titles(), language.classes());
    fmt::print("  {:.6f}  all tokens equally likely: where training starts\n", std::log(vocabulary_));
    fmt::print("  {:.6f}  a model that sees only the last token\n", language.without_attention());
    fmt::print("  {:.6f}  the floor for samples of {} tokens\n", language.floor(sequence_), sequence_);
    fmt::print("  {:.6f}  the entropy rate: the floor for endless texts\n", language.entropy_rate());
  }

  std::vector<std::string> words_;
  std::string out_, tokenizer_;
  std::int64_t vocabulary_ = 4096, seed_ = 1, sequence_ = 256;
  const Action* row_ = nullptr;
};

const Data::Action Data::actions[] = {{"tokenize", true, ".bin", &Data::tokenize},
                                      {"train-bpe", true, ".bpe", &Data::train},
                                      {"show", true, nullptr, &Data::show},
                                      {"floor", false, nullptr, &Data::floor}};

}  // namespace

std::unique_ptr<Command> make_data() { return std::make_unique<Data>(); }

}  // namespace chorale
