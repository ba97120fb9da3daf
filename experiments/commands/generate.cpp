// `chorale generate` generates text with a trained model, token by token.
//
//   build/chorale generate --load runs/latest --tokenizer data/english.bpe --prompt "The art of" --tokens 100
//   mpirun -n 4 build/chorale generate --load runs/latest --layout tp2.pp2      a model that is too large for one rank
//   mpirun -n 4 build/chorale generate --load runs/latest --samples 20          four texts at a time
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "experiments/common/command.hpp"
#include "experiments/common/kept_tokenizer.hpp"
#include "experiments/common/machine_watch.hpp"
#include "experiments/common/run_record.hpp"
#include "experiments/common/same_hosts.hpp"
#include "experiments/train/memory_limit.hpp"
#include "experiments/train/team.hpp"
#include "parallel/generation/generation.hpp"
#include "parallel/plan/room.hpp"
#include "parallel/state/resume.hpp"
#include "parallel/state/stored_weights.hpp"
#include "src/base/text.hpp"
#include "src/data/bpe.hpp"

namespace chorale {
namespace {

class Generate final : public Command {
 public:
  void declare(Options& o) override {
    o.add("load", load_, "a run, a checkpoint, or a Hugging Face model folder").words("DIR");
    o.add("prompt", prompt_, "start of the text; without a tokenizer: token numbers, as in 5,7,9");
    o.add("tokenizer", tokenizer_name_, "default: the tokenizer kept with the model; none: show tokens as numbers")
        .words("bytes|none|FILE|DIR");
    o.add("tokens", tokens_, "tokens to generate per text").range(1, 1e9);
    o.add("samples", samples_, "number of texts, each with the next seed; 0: one per replica").range(0, 1e9);
    o.add("temperature", sampling_.temperature,
          "below 1 more predictable, above 1 more random; 0: always the likeliest token")
        .range(0, 1e3);
    o.add("top-k", sampling_.top_k, "sample from the k likeliest tokens; 0: from all").range(0, 1e9);
    o.add("top-p", sampling_.top_p, "sample from the fewest tokens that together reach this probability").range(0, 1);
    o.add("seed", seed_, "seed of the sampling").range(0, 9e18);
    o.add("dtype", dtype_, "type to compute in").one_of({"f32", "bf16", "f16", "f64"});
    o.add("numerics", numerics_, "fast or exact");
    o.add("threads", threads_, "threads per rank; 0: its share of the cores").range(0, 4096);
    layout_flags_.declare(o);
    memory_.declare(o);
    device_.declare(o);
  }

  void check(const Launch& launch) override {
    device_.check();
    if (load_.empty())
      usage_error("no model to generate with", "--load is not given", "name a run, such as --load runs/latest");
    const std::int64_t ranks = layout_flags_.ranks_of(launch);
    const Layout layout = layout_flags_.choice(ranks).layout;
    require_generates(layout);
    if (samples_ == 0) samples_ = layout.replicas();
    if (samples_ < layout.replicas())
      usage_error("the layout has more replicas than there are texts",
                  fmt::format("{} and --samples {}", to_string(layout), samples_),
                  fmt::format("ask for --samples {}, or for a layout with fewer replicas", layout.replicas()));
    // A replica generates one text at a time. The batch below has enough micro-batches for every schedule.
    require_fits(layout, {shape_stored_in(load_), ranks, layout.replicas() * layout.stages(), 1});
    find_tokenizer();
    read_prompt();
    require_known_tokens();
  }

  int run(Session& session) override {
    const mpi::Runtime& runtime = *session.runtime;
    layout_flags_.require_launched(runtime.size(), "generate");
    const bool hugging_face = std::filesystem::exists(std::filesystem::path(load_) / "config.json");
    require_same_files(runtime, {hugging_face ? load_ : "", tokenizer_name_});  // a checkpoint has its own checksums
    Log log({.level = runtime.rank() == 0 ? session.log_level : "off"});
    const int share = threads_of_a_rank(runtime, gather_rank_facts(runtime, session.clock));
    const int threads = threads_ ? static_cast<int>(threads_) : share;
    const train::ParallelChoice choice = layout_flags_.choice(runtime.size());
    require_room_for(choice.layout, runtime);
    train::TrainingTeam team(choice, device_, session);
    Mesh mesh = team.mesh();
    HostMemory host;
    Ledger ledger;
    Allocator memory(host, ledger);
    std::optional<StoredWeights> stored(std::in_place, load_, memory, log, peers_of(mesh));
    Generator generator({stored->shape(), dtype_, numerics_, threads, device_.plugin()}, std::move(mesh), team.memory());
    stored->read(generator.weights(), {threads});
    stored.reset();
    MachineWatch(session).warn(log);

    const double start = session.clock.seconds();
    for (std::int64_t first = 0; first < samples_; first += generator.mesh().data().size()) generate(generator, first);
    const double seconds = session.clock.seconds() - start;
    log.info("{} tokens in {}, {:.1f} tokens/s", samples_ * tokens_, human_seconds(seconds),
             static_cast<double>(samples_ * tokens_) / seconds);
    return 0;
  }

 private:
  // Called before anything is allocated.
  void require_room_for(const Layout& layout, const mpi::Runtime& runtime) {
    if (!device_.asked()) memory_.settle(runtime);
    const ModelShape shape = shape_stored_in(load_);
    if (memory_.bytes() == 0) return;
    const GenerationOptions options{shape, dtype_, numerics_};
    const auto bytes = [&](const Layout& on) { return planned_bytes(options, on, static_cast<std::int64_t>(ids_.size())); };
    if (bytes(layout) <= memory_.bytes()) return;
    const LayoutLimits any_batch{shape, runtime.size(), layout.ranks() << 20, 1};
    throw NoRoom(Exit::usage, "a rank has too little memory for the weights",
                 fmt::format("{}: {} of weights, keys and values; {} {}", to_string(layout), human_bytes(bytes(layout)),
                             memory_.about(), human_bytes(memory_.bytes())),
                 how_to_fit(
                     layout, any_batch, [&](const Layout& on) { return !on.sequence && bytes(on) <= memory_.bytes(); },
                     "generate in a smaller --dtype, or with a smaller model"));
  }

  // Generates one text per replica, starting with text number `first`.
  void generate(Generator& generator, std::int64_t first) const {
    Axis& replicas = generator.mesh().data();
    const bool prints = generator.mesh().world().rank() == 0;
    Sampling sampling = sampling_;
    sampling.seed = static_cast<std::uint64_t>(seed_ + first + replicas.rank());
    std::string text = shown(ids_);
    if (prints) print(text);
    const bool has_a_text = first + replicas.rank() < samples_;
    generator.generate(ids_, has_a_text ? tokens_ : 0, sampling, [&](std::int32_t token) {
      text += shown({token});
      if (prints) print(shown({token}));
      return true;
    });
    if (prints) print("\n");
    const std::vector<std::string> texts = replicas.exchange(text);
    for (std::size_t i = 1; prints && i < texts.size() && first + static_cast<std::int64_t>(i) < samples_; ++i)
      print(texts[i] + "\n");
  }

  void find_tokenizer() {
    if (tokenizer_name_ == "none") return;
    if (!tokenizer_name_.empty()) {
      tokenizer_ = Tokenizer::named(tokenizer_name_);
      return;
    }
    const std::string kept = tokenizer_beside(load_);
    if (kept.empty()) return;
    try {
      tokenizer_ = Tokenizer::named(kept);
    } catch (const Error& error) {  // the tokenizer is unreadable, but tokens can still be printed as numbers
      unread_ = fmt::format("; {}", trim(split(error.what(), '\n').at(0)));
    }
  }

  void read_prompt() {
    if (tokenizer_) {
      ids_ = tokenizer_->opening();
      const std::vector<std::int32_t> said = tokenizer_->encode(prompt_.empty() && ids_.empty() ? "\n" : prompt_);
      ids_.insert(ids_.end(), said.begin(), said.end());
      return;
    }
    for (const std::string& word : split(prompt_.empty() ? "0" : prompt_, ',')) {
      std::size_t read = 0;
      try {
        ids_.push_back(std::stoi(word, &read));
      } catch (const std::exception&) {}
      if (read == 0 || read != word.size())
        usage_error("the prompt is text, but there is no tokenizer", fmt::format("\"{}\" is not a number{}", word, unread_),
                    "give numbers with commas, as in --prompt 5,7,9, or the tokenizer of the training data: --tokenizer "
                    "bytes|FILE|DIR");
    }
  }

  // Called before anything is printed.
  void require_known_tokens() const {
    const std::int64_t vocabulary = shape_stored_in(load_).vocabulary;
    for (const std::int32_t id : ids_)
      if (id < 0 || id >= vocabulary)
        usage_error("the prompt has a token that the model does not know",
                    fmt::format("{} of a vocabulary of {}", id, vocabulary),
                    tokenizer_ ? "use the tokenizer of the training data"
                               : fmt::format("give numbers from 0 to {}", vocabulary - 1));
  }

  std::string shown(const std::vector<std::int32_t>& tokens) const {
    std::string text;
    for (const std::int32_t token : tokens) {
      if (!tokenizer_)
        text += fmt::format("{} ", token);
      else if (token < tokenizer_->vocabulary())
        text += tokenizer_->bytes_of(token);
    }
    return text;
  }

  // Writes raw bytes, because a character can consist of several tokens.
  static void print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (std::fflush(stdout) != 0)
      throw Error(Exit::runtime, "the text cannot be written", std::strerror(errno), "free some space at its destination");
  }

  train::LayoutFlags layout_flags_;
  train::MemoryLimit memory_;
  train::ComputeDevice device_;
  std::string load_, prompt_, tokenizer_name_, unread_;
  DType dtype_ = DType::f32;
  NumericsKind numerics_ = NumericsKind::fast;
  std::int64_t tokens_ = 100, samples_ = 0, seed_ = 0, threads_ = 0;
  Sampling sampling_{.temperature = 0.8, .top_p = 0.95};
  std::optional<Tokenizer> tokenizer_;
  std::vector<std::int32_t> ids_;  // the tokens of the prompt
};

}  // namespace

std::unique_ptr<Command> make_generate() { return std::make_unique<Generate>(); }

}  // namespace chorale
