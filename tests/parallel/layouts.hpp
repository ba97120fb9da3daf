// Helpers for tests of layouts. The helpers build a small model that fits many layouts, train it on one rank of any mesh,
// and compare the results of two runs. Losses, gradient norms and fingerprints (hashes of the state) are equal on all ranks.
// So each rank can compare these results without communication.
#pragma once
#include "parallel/state/fingerprint.hpp"
#include "src/data/sampler.hpp"
#include "src/data/synthetic.hpp"
#include "src/memory/pool.hpp"
#include "tests/collectives/worlds.hpp"
#include "tests/parallel/covering.hpp"
#include "tests/sample.hpp"

namespace chorale::test {

// The model's heads, feed-forward units and vocabulary blocks can be divided among 2, 3 and 6 tensor-parallel ranks,
// evenly or unevenly. The last vocabulary block is shorter than all other blocks.
inline ModelShape small_shape() {
  ModelShape s{ModelFamily::gpt2, 4, 6, 6, 48, 96, 12, 61};
  s.dropout = 0.1;
  return s;
}

// small_shape() with experts in every second block. With a `capacity` of 0, no token is dropped.
inline ModelShape small_moe(double capacity = 0) {
  ModelShape s = small_shape();
  s.experts = {.count = 6, .chosen = 2, .ffn = 24, .shared_ffn = 12, .every = 2, .balance = 0.02, .z = 0.001};
  s.experts.capacity = capacity;
  return s;
}

inline TrainingOptions options_for(const char* numerics, const Layout& layout) {
  TrainingOptions o{.shape = small_shape()};
  o.optimizer.rate = {.decay = RateDecay::cosine, .peak = 5e-3, .minimum = 1e-4, .warmup = 2, .steps = 20};
  o.numerics = named<NumericsKind>(numerics);
  o.batch.global = 12;
  o.batch.micro = layout.stages() > 1 ? 1 : 12 / layout.replicas();
  o.replicas.bucket_bytes = 20000;
  return o;
}

inline bool fits(const TrainingOptions& o, const Layout& layout) {
  return chorale::fits(layout, {o.shape, layout.ranks(), o.batch.global, o.batch.micro, layout.axes, o.context});
}

// On more than 4 ranks, layouts that repeat shards are included only with ZeRO-3. hybrid_test.cpp tests further layouts.
inline std::vector<Layout> layouts_of(int world) {
  std::vector<Layout> layouts = all_layouts({small_shape(), world, 12, 1});
  std::erase_if(layouts, [&](const Layout& l) { return world > 4 && l.repeats() > 1 && (l.zero < 3 || l.sequence); });
  return layouts;
}

// The layouts of small_moe() whose ranks divide the experts.
inline std::vector<Layout> expert_layouts_of(int world) {
  std::vector<Layout> layouts = all_layouts({small_moe(), world, 12, 1});
  std::erase_if(layouts, [](const Layout& layout) { return layout.expert_ranks() == 1; });
  return layouts;
}

// Some targets are masked, and the replicas have different numbers of masked targets. In packed samples, early targets are
// masked, too.
inline ReadSamples samples_of(const ModelShape& shape, bool packed = false) {
  const Documents documents = packed ? Documents::random(6) : Documents();
  return [language = SyntheticLanguage(static_cast<std::int64_t>(shape.vocabulary), 7), sequence = shape.sequence,
          documents](std::int64_t first, std::int64_t samples, const SampleRows& rows) {
    std::vector<std::int64_t> which;
    for (std::int64_t i = 0; i < samples; ++i) which.push_back(first + i);
    fill_batch(language, which, sequence, rows, documents);
    for (std::int64_t i = 0; i < samples; ++i)
      for (std::int64_t masked = 0; masked < (first + i) % 5; ++masked)
        rows.targets[static_cast<std::size_t>(i * sequence + masked)] = -1;
    if (documents.any()) mask_early_targets(rows.targets, sequence);
  };
}

struct Seen {
  std::vector<StepResult> steps;
  std::vector<std::map<std::string, std::uint64_t>> prints;
  std::vector<std::vector<std::int64_t>> choices;  // expert choice counts in each step (ChoiceCounts::numbers)
  double held_out = 0;

  void forget(std::ptrdiff_t first_steps) {
    const auto cut = [=](auto& all) { all.erase(all.begin(), all.begin() + first_steps); };
    cut(steps);
    cut(prints);
    cut(choices);
  }
  void keep(int first_steps) {
    const auto count = static_cast<std::size_t>(first_steps);
    steps.resize(count);
    prints.resize(count);
    choices.resize(count);
  }
};

// The training of one rank, and the results of its steps so far.
struct Run {
  SystemClock clock;
  Pool pool;
  Training training;
  ReadSamples read;
  Seen seen;

  Run(const TrainingOptions& options, Mesh mesh, Memory& memory)
      : pool(memory),
        training(options, std::move(mesh), pool, clock),
        read(samples_of(options.shape, options.batch.packed)) {}

  Run& steps(int count) {
    for (int i = 0; i < count; ++i) {
      seen.steps.push_back(training.step(read));
      training.check_activations();
      seen.prints.push_back(fingerprint(training));
      seen.choices.push_back(training.choices().numbers);
    }
    return *this;
  }
};

inline Seen train(const TrainingOptions& options, Mesh mesh, Memory& memory) {
  Run run(options, std::move(mesh), memory);
  run.steps(3).seen.held_out = run.training.evaluate(run.read, 7);
  return run.seen;
}

inline Seen train_alone(TrainingOptions options) {
  HostMemory host;
  options.batch.micro = options.batch.global;
  options.memory.partition_activations = false;  // needs tensor-parallel ranks
  return train(options, Mesh(), host);
}

// Returns a description of the first difference between two runs, or "".
inline std::string difference(const Seen& one, const Seen& many) {
  const auto differs = [](double a, double b) {
    return a != b && !(a != a && b != b);
  };  // NaN in both runs (after an f16 overflow) is not a difference
  for (std::size_t i = 0; i < one.steps.size(); ++i) {
    const auto &a = one.steps[i], &b = many.steps.at(i);
    if (differs(a.loss, b.loss)) return fmt::format("step {}: loss {} and {}", i + 1, a.loss, b.loss);
    if (one.choices[i] != many.choices.at(i)) return fmt::format("step {}: experts were chosen differently", i + 1);
    if (a.tokens != b.tokens) return fmt::format("step {}: {} tokens and {}", i + 1, a.tokens, b.tokens);
    if (differs(a.gradient_norm, b.gradient_norm))
      return fmt::format("step {}: norm {} and {}", i + 1, a.gradient_norm, b.gradient_norm);
    if (a.skipped != b.skipped) return fmt::format("step {}: skipped {} and {}", i + 1, a.skipped, b.skipped);
    for (const auto& [name, print] : one.prints.at(i))
      if (!many.prints.at(i).contains(name) || many.prints[i].at(name) != print)
        return fmt::format("step {}: {} differs", i + 1, name);
    for (const auto& [name, print] : many.prints.at(i))
      if (!one.prints.at(i).contains(name)) return fmt::format("step {}: {} differs", i + 1, name);
  }
  if (one.held_out != many.held_out) return fmt::format("held out {} and {}", one.held_out, many.held_out);
  return "";
}

// Runs `body(mesh, memory)` on every rank of a layout. Each rank is a thread. The body returns an error text, or "". The
// ranks appear to be on the given hosts (Problem::hosts).
template <class Body>
std::string on_thread_mesh(const Layout& layout, Body body, const std::vector<int>& hosts = {}) {
  const int ranks = static_cast<int>(layout.ranks());
  ThreadWorld world(ranks);
  return on_threads(ranks, [&](ThreadRank& me) {
    SystemClock clock;
    Communicator placed = open_world(world.transport(me.rank()), clock);
    placed.pretend_hosts(hosts);
    const Worlds worlds(std::move(placed));
    const std::string trouble = body(Mesh(layout, worlds, {}), worlds.memory());
    me.check(trouble.empty(), "{}", trouble);
  });
}

// Returns the results of rank 0.
inline Seen trained(const TrainingOptions& options, const Layout& layout) {
  Seen seen;
  const std::string trouble = on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
    const bool first = mesh.world().rank() == 0;
    Seen mine = train(options, std::move(mesh), memory);
    if (first) seen = std::move(mine);
    return std::string();
  });
  CHECK(trouble == "");
  return seen;
}

}  // namespace chorale::test
