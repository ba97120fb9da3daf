// `chorale generate`: text from a trained model, token by token.
//
//   build/chorale generate --load runs/latest --tokenizer data/english.bpe --prompt "The art of" --tokens 100
#include <fmt/format.h>

#include <cstdio>

#include "experiments/command.hpp"
#include "parallel/generation.hpp"
#include "parallel/weights.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"
#include "src/data/bpe.hpp"
#include "src/memory/pool.hpp"

namespace chorale {
namespace {

class Generate final : public Command {
 public:
  void declare(Options& o) override {
    o.add("load", load_, "a run, a checkpoint, or a folder of Hugging Face's").words("DIR");
    o.add("prompt", prompt_, "what the text begins with; with no tokenizer: numbers, as in 5,7,9");
    o.add("tokenizer", tokenizer_, "that of the training data; none: tokens are shown as numbers").words("bytes|FILE");
    o.add("tokens", tokens_, "how many").range(1, 1e9);
    o.add("temperature", sampling_.temperature, "below 1 likelier, above 1 wilder; 0: always the likeliest").range(0, 1e3);
    o.add("top-k", sampling_.top_k, "only the k likeliest; 0: all").range(0, 1e9);
    o.add("top-p", sampling_.top_p, "only the fewest that reach this probability").range(0, 1);
    o.add("seed", seed_, "another text for each").range(0, 9e18);
    o.add("dtype", dtype_, "to compute with").one_of({"f32", "bf16", "f16", "f64"});
    o.add("numerics", numerics_, "fast or exact").one_of({"fast", "exact"});
    o.add("threads", threads_, "0: all cores").range(0, 4096);
  }

  void check(const Launch&) override {
    if (load_.empty())
      usage_error("no model to generate with", "--load is not given", "name a run, such as --load runs/latest");
  }

  int run(Session& session) override {
    Log log({.level = session.log_level});
    HostMemory host;
    Pool pool(host);
    Ledger ledger;
    Allocator memory(pool, ledger);
    const Queue queue{threads_ ? static_cast<int>(threads_) : static_cast<int>(allowed_cpus().size())};
    const DType compute = dtype_named(dtype_);
    Model model = model_of(load_weights(load_, memory, log), memory, compute, queue);
    const auto numerics = numerics_named(numerics_);
    Generator generator(model, memory, *numerics, compute, queue);
    std::optional<Tokenizer> tokenizer;
    if (!tokenizer_.empty()) tokenizer = Tokenizer::named(tokenizer_);
    sampling_.seed = static_cast<std::uint64_t>(seed_);

    const std::vector<std::int32_t> prompt = read_prompt(tokenizer);
    for (const std::int32_t token : prompt) print(tokenizer, token);
    const double start = session.clock.seconds();
    generator.generate(prompt, tokens_, sampling_, [&](std::int32_t token) {
      print(tokenizer, token);
      return std::ferror(stdout) == 0;
    });
    std::fputs("\n", stdout);
    const double seconds = session.clock.seconds() - start;
    log.info("{} tokens in {}, {:.1f} tokens/s", tokens_, human_seconds(seconds), static_cast<double>(tokens_) / seconds);
    return 0;
  }

 private:
  std::vector<std::int32_t> read_prompt(const std::optional<Tokenizer>& tokenizer) const {
    if (tokenizer) return tokenizer->encode(prompt_.empty() ? "\n" : prompt_);
    std::vector<std::int32_t> ids;
    for (const std::string& word : split(prompt_.empty() ? "0" : prompt_, ',')) {
      std::size_t read = 0;
      try {
        ids.push_back(std::stoi(word, &read));
      } catch (const std::exception&) {}
      if (read == 0 || read != word.size())
        usage_error("the prompt is text and there is no tokenizer", fmt::format("\"{}\" is no number", word),
                    "give --tokenizer bytes or the file that made the training data");
    }
    return ids;
  }

  // Bytes go out as they are: a character may be more than one token.
  static void print(const std::optional<Tokenizer>& tokenizer, std::int32_t token) {
    if (!tokenizer)
      fmt::print("{} ", token);
    else if (token < tokenizer->vocabulary())
      std::fwrite(tokenizer->bytes_of(token).data(), 1, tokenizer->bytes_of(token).size(), stdout);
    std::fflush(stdout);
  }

  std::string load_, prompt_, tokenizer_, dtype_ = "f32", numerics_ = "fast";
  std::int64_t tokens_ = 100, seed_ = 0, threads_ = 0;
  Sampling sampling_{.temperature = 0.8, .top_p = 0.95};
};

}  // namespace

std::unique_ptr<Command> make_generate() { return std::make_unique<Generate>(); }

}  // namespace chorale
