// Trains a model to find a needle (a token) in a long sequence. The last 32 tokens ask which needle was hidden among the
// first 64 tokens. All other tokens are equal, and only the answers count in the loss. A model that cannot attend over the
// whole sequence can only guess, so its loss stays at ln 2 = 0.69. If gradients are lost between context ranks, the model
// can still learn, but later. So all losses during the training must also equal the losses of a one-rank run.
//
//   inputs    noise  needle  noise  noise  …  noise  ask     ask     ask
//   targets     –      –       –      –          –   needle  needle  needle
//
// Each rank has a contiguous part of the sequence, so the first rank has the needle and the last rank has the tokens that
// ask for it. With a zigzag partition, one rank would have both.
#include <algorithm>
#include <cmath>

#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"
#include "tests/progress.hpp"

namespace chorale {
namespace {

constexpr int needles = 2, vocabulary = 8, places = 64, asks = 32;
constexpr std::int32_t ask = 0, first_needle = 1, noise = 4;

// Attention starts nearly uniform, so each of 4096 tokens gets a weight of about 1/4096, and the needle's gradient is small.
// Each needle occurs in the same number of samples of a batch. So guessing causes no larger gradient, which would hide the
// needle's gradient. For the same reason, there is only one noise token.
ReadSamples haystack(std::int64_t sequence) {
  return [sequence](std::int64_t first, std::int64_t samples, const SampleRows& rows) {
    for (std::int64_t i = 0; i < samples; ++i) {
      const Random random{.seed = 5, .step = static_cast<std::uint32_t>(first + i)};
      const auto place = static_cast<std::int64_t>(random.uniform(0) * places);
      const auto needle = static_cast<std::int32_t>(first_needle + (first + i) % needles);
      for (std::int64_t token = 0; token < sequence; ++token) {
        const auto row = static_cast<std::size_t>(i * sequence + token);
        const bool asked = token >= sequence - asks;
        rows.inputs[row] = token == place ? needle : asked ? ask : noise;
        rows.targets[row] = asked ? needle : -1;
      }
    }
  };
}

// Queries and keys are normalized, so attention scores are large enough to learn from at the start. The rotary base is so
// large that most elements of a head hardly depend on the distance between tokens.
TrainingOptions options_of(std::int64_t sequence, DType compute) {
  TrainingOptions o{.shape = {ModelFamily::llama, 2, 4, 4, 32, 64, sequence, vocabulary}};
  o.shape.head = 16;
  o.shape.qk_norm = true;
  o.shape.rotary_base = 1e10;
  o.batch.global = o.batch.micro = needles;
  o.optimizer.decay = 0;
  o.optimizer.rate = {.decay = RateDecay::constant, .peak = 6e-3, .warmup = 5};
  o.context.cut = &token_cut_named("contiguous");
  o.compute = compute;
  return o;
}

// Returns the losses after each tenth of the training. For a short training, returns the loss after each step.
std::vector<double> losses(const TrainingOptions& options, int steps, Mesh mesh, Memory& memory) {
  SystemClock clock;
  Training training(options, std::move(mesh), memory, clock);
  std::vector<double> all;
  for (int step = 1; step <= steps; ++step) {
    const double loss = training.step(haystack(options.shape.sequence)).loss;
    test::alive();
    if (step % std::max(steps / 10, 1) == 0) all.push_back(loss);
  }
  return all;
}

void print(std::int64_t sequence, const char* ranks, const std::vector<double>& all) {
  std::string text;
  for (const double loss : all) text += fmt::format(" {:.4f}", loss);
  fmt::print("{} tokens, {}:{}\n", sequence, ranks, text);
  std::fflush(stdout);
}

// Where the loss falls steeply, a rounding error in f32 can delay a run by a few steps. So in f32, each loss must lie within
// the range of the one-rank losses from a tenth of the training earlier to a tenth later. In f64, the losses must be equal.
std::string difference(const std::vector<double>& seen, const std::vector<double>& alone, DType compute) {
  const std::size_t shift = compute == DType::f64 ? 0 : 1;
  const double rounding = compute == DType::f64 ? 1e-6 : 1e-3;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const auto first = alone.begin() + static_cast<std::ptrdiff_t>(i - std::min(i, shift));
    const auto last = alone.begin() + static_cast<std::ptrdiff_t>(std::min(i + shift + 1, alone.size()));
    const auto [least, most] = std::minmax_element(first, last);
    if (seen[i] < *least - rounding || seen[i] > *most + rounding)
      return fmt::format("loss {} is {}; one rank has {} to {} around there", i + 1, seen[i], *least, *most);
  }
  return "";
}

// Trains on one rank, and with every scheme under cp4. All runs must have the same losses, and the last loss must be at most
// `end`.
std::vector<double> losses_as_on_one_rank(std::int64_t sequence, int steps, DType compute, double end) {
  HostMemory host;
  TrainingOptions options = options_of(sequence, compute);
  const std::vector<double> alone = losses(options, steps, Mesh(), host);
  print(sequence, "one rank", alone);
  for (const ContextScheme& scheme : context_schemes()) {
    options.context.scheme = &scheme;
    options.context.inner = scheme.has_levels ? 2 : 0;
    CHECK(test::on_thread_mesh(parse_layout("dp1.cp4", 0), [&](Mesh mesh, Memory& memory) -> std::string {
            const bool prints = mesh.world().rank() == 0;
            const std::vector<double> seen = losses(options, steps, std::move(mesh), memory);
            if (prints) print(sequence, fmt::format("cp4 {}", scheme.name).c_str(), seen);
            if (seen.back() > end) return fmt::format("the loss is {}", seen.back());
            return difference(seen, alone, compute);
          }) == "");
  }
  return alone;
}

void finds_the_needle(std::int64_t sequence, int steps, DType compute) {
  const std::vector<double> alone = losses_as_on_one_rank(sequence, steps, compute, 0.05);
  CHECK(alone.front() > 0.5);
  CHECK(alone.back() < 0.05);
}

TEST_CASE("a model learns to copy a token over 256 positions under cp4, as on one rank", "[threads]") {
  if (test::only_in_test_all("\"every scheme and cut of context parallelism…\" compares the gradients of one step")) return;
  finds_the_needle(256, 60, DType::f64);
}

// In f64, attention runs in plain loops, and all 40 steps would take an hour. So only the first steps are compared in f64.
TEST_CASE("a model learns to copy a token over 4096 positions under cp4, as on one rank", "[threads][.]") {
  losses_as_on_one_rank(4096, 3, DType::f64, 2);
  finds_the_needle(4096, 40, DType::f32);
}

}  // namespace
}  // namespace chorale
