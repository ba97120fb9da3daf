// Every strategy and every product of them is the same model as one rank: to the bit in exact numerics, nearly so in fast. Ranks are threads of
// one process here; tests/parallel/layouts_spmd_test.cpp has them as processes, on every backend.
#include "parallel/fingerprint.hpp"
#include "src/data/sampler.hpp"
#include "src/data/synthetic.hpp"
#include "src/memory/pool.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/worlds.hpp"

namespace chorale {
namespace {

ModelShape small_shape() {
  ModelShape s{"gpt2", 4, 6, 6, 48, 96, 12, 61};
  s.dropout = 0.1;
  return s;
}

TrainingOptions options_for(const char* numerics, const Layout& layout) {
  TrainingOptions o{.shape = small_shape()};
  o.numerics = numerics;
  o.global_batch = 12;
  o.micro_batch = layout.pipeline > 1 ? 1 : 12 / layout.data;
  o.rate = {.decay = "cosine", .peak = 5e-3, .minimum = 1e-4, .warmup = 2, .steps = 20};
  o.bucket_bytes = 20000;
  return o;
}

struct Seen {
  std::vector<StepResult> steps;
  std::vector<std::map<std::string, std::uint64_t>> prints;
  double held_out = 0;
};

Seen train(const TrainingOptions& options, Mesh mesh, Memory& memory) {
  SystemClock clock;
  const SyntheticLanguage language(static_cast<std::int64_t>(options.shape.vocabulary), 7);
  const ReadSamples read = [&](std::int64_t first, std::int64_t samples, std::span<std::int32_t> inputs,
                               std::span<std::int32_t> targets) {
    std::vector<std::int64_t> which;
    for (std::int64_t i = 0; i < samples; ++i) which.push_back(first + i);
    fill_batch(language, which, options.shape.sequence, inputs, targets);
    for (std::int64_t i = 0; i < samples; ++i)  // some are not counted, and not the same number on every replica
      targets[static_cast<std::size_t>(i * options.shape.sequence + (first + i) % 5)] = -1;
  };
  Pool pool(memory);
  Training training(options, std::move(mesh), pool, clock);
  Seen seen;
  for (int i = 0; i < 3; ++i) {
    seen.steps.push_back(training.step(read));
    require(training.activation_bytes() == training.declared_activation_bytes(), "{} bytes are kept and {} declared",
            training.activation_bytes(), training.declared_activation_bytes());
    seen.prints.push_back(fingerprint(training));
  }
  seen.held_out = training.evaluate(read, 7);
  return seen;
}

Seen alone(const char* numerics) {
  HostMemory host;
  return train(options_for(numerics, {}), Mesh(), host);
}

std::string difference(const Seen& one, const Seen& many) {
  for (std::size_t i = 0; i < one.steps.size(); ++i) {
    const auto &a = one.steps[i], &b = many.steps[i];
    if (a.loss != b.loss) return fmt::format("step {}: loss {} and {}", i + 1, a.loss, b.loss);
    if (a.tokens != b.tokens) return fmt::format("step {}: {} tokens and {}", i + 1, a.tokens, b.tokens);
    if (a.gradient_norm != b.gradient_norm)
      return fmt::format("step {}: norm {} and {}", i + 1, a.gradient_norm, b.gradient_norm);
    for (const auto& [name, print] : one.prints[i])
      if (!many.prints[i].contains(name) || many.prints[i].at(name) != print)
        return fmt::format("step {}: {} differs", i + 1, name);
  }
  if (one.held_out != many.held_out) return fmt::format("held out {} and {}", one.held_out, many.held_out);
  return "";
}

void same_on_threads(const TrainingOptions& options, const Layout& layout, const Seen& expected) {
  INFO(to_string(layout));
  const int ranks = static_cast<int>(layout.ranks());
  ThreadWorld world(ranks);
  CHECK(test::on_threads(ranks, [&](test::ThreadRank& me) {
          SystemClock clock;
          const Worlds worlds(open_world(world.transport(me.rank()), clock));
          const Seen seen = train(options, Mesh(layout, worlds, {}), worlds.memory());
          const std::string trouble = difference(expected, seen);
          me.check(trouble.empty(), "{}", trouble);
        }) == "");
}

TEST_CASE("exact numerics have the same bits on every layout", "[threads]") {
  const Seen expected = alone("exact");
  for (const int world : {1, 2, 3, 4, 6, 8})
    for (const Layout& layout : all_layouts({small_shape(), world, 12, 1}))
      same_on_threads(options_for("exact", layout), layout, expected);
}

TEST_CASE("tensor ranks may share what recomputation keeps", "[threads]") {
  const Seen expected = alone("exact");
  for (const char* word : {"tp2", "dp2.tp3", "tp2.pp2", "tp2.sp", "dp2.tp2.z3"}) {
    Layout layout = parse_layout(word, 0);
    layout.data = std::max<std::int64_t>(layout.data, 1);
    TrainingOptions options = options_for("exact", layout);
    options.remake = Remake::full;
    options.partition_activations = true;
    same_on_threads(options, layout, expected);
  }
}

}  // namespace
}  // namespace chorale
