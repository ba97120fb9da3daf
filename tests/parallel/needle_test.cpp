// A needle in a long sequence: the last eighth of the tokens asks for the first one. Everything between is noise, and
// nothing else counts in the loss. A model that cannot attend over the whole sequence, or loses the gradient on the way from
// one context rank to another, stays at the loss of guessing, ln 4.
//
//   inputs    needle  noise  noise  …  noise  ask     ask     ask
//   targets     –       –      –          –   needle  needle  needle
#include <cmath>

#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"
#include "tests/progress.hpp"

namespace chorale {
namespace {

constexpr int needles = 4, first_noise = 8, vocabulary = 32;

ReadSamples haystack(std::int64_t sequence) {
  return [sequence](std::int64_t first, std::int64_t samples, const SampleRows& rows) {
    for (std::int64_t i = 0; i < samples; ++i) {
      const Random random{.seed = 5, .step = static_cast<std::uint32_t>(first + i)};
      const auto draw = [&](std::int64_t token, double from, double count) {
        return static_cast<std::int32_t>(from + random.uniform(static_cast<std::uint64_t>(token)) * count);
      };
      const auto start = static_cast<std::size_t>(i * sequence);
      const std::int32_t needle = draw(0, 1, needles);
      for (std::int64_t token = 0; token < sequence; ++token) {
        const std::size_t row = start + static_cast<std::size_t>(token);
        const bool asks = token >= sequence - sequence / 8;
        rows.inputs[row] = token == 0 ? needle : asks ? 0 : draw(token, first_noise, vocabulary - first_noise);
        rows.targets[row] = asks ? needle : -1;
      }
    }
  };
}

TrainingOptions options_of(std::int64_t sequence, int steps) {
  TrainingOptions o{.shape = {"gpt2", 2, 4, 4, 64, 128, sequence, vocabulary}};
  o.global_batch = o.micro_batch = 32;
  o.decay = 0;
  o.rate = {.decay = "cosine", .peak = 1e-2, .minimum = 1e-3, .warmup = 10, .steps = steps};
  return o;
}

// The loss after each tenth of the training.
std::vector<double> losses(const TrainingOptions& options, int steps, Mesh mesh, Memory& memory) {
  SystemClock clock;
  Training training(options, std::move(mesh), memory, clock);
  std::vector<double> all;
  for (int step = 1; step <= steps; ++step) {
    const double loss = training.step(haystack(options.shape.sequence)).loss;
    test::alive();
    if (step % (steps / 10) == 0) all.push_back(loss);
  }
  return all;
}

std::string words(const std::vector<double>& all) {
  std::string text;
  for (const double loss : all) text += fmt::format(" {:.4f}", loss);
  return text;
}

void finds_the_needle(std::int64_t sequence, int steps) {
  HostMemory host;
  const std::vector<double> alone = losses(options_of(sequence, steps), steps, Mesh(), host);
  fmt::print("{} tokens, one rank:{}\n", sequence, words(alone));
  CHECK(alone.front() > 0.3);
  CHECK(alone.back() < 0.05);
  for (const ContextScheme& scheme : context_schemes()) {
    TrainingOptions options = options_of(sequence, steps);
    options.context.scheme = scheme.name;
    CHECK(test::on_thread_mesh(parse_layout("dp1.cp4", 0), [&](Mesh mesh, Memory& memory) -> std::string {
            const bool prints = mesh.world().rank() == 0;
            const std::vector<double> seen = losses(options, steps, std::move(mesh), memory);
            if (prints) fmt::print("cp4, {}:{}\n", scheme.name, words(seen));
            return seen.back() < 0.05 ? "" : fmt::format("the loss is {}", seen.back());
          }) == "");
  }
}

TEST_CASE("a model learns to copy a token over 256 positions under cp4, as on one rank", "[threads]") {
  finds_the_needle(256, 100);
}

// Takes hours.
TEST_CASE("a model learns to copy a token over 4096 positions under cp4, as on one rank", "[threads][.]") {
  finds_the_needle(4096, 300);
}

}  // namespace
}  // namespace chorale
