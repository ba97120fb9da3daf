// Tests how many times each expert is chosen in a complete training step. These counts are integers, and they must not
// depend on the layout or on recomputation.
#include <fmt/ranges.h>

#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"

namespace chorale {
namespace {

TrainingOptions options_on(const Layout& layout, double capacity) {
  TrainingOptions options = test::options_for("exact", layout);
  options.shape = test::small_moe(capacity);
  return options;
}

using Steps = std::vector<std::vector<std::int64_t>>;

Steps counts_alone(const TrainingOptions& options) {
  HostMemory host;
  return test::Run(options, Mesh(), host).steps(2).seen.choices;
}

constexpr std::int64_t choices_of_a_block = 12 * 12 * 2;  // sequences × tokens × choices per token

TEST_CASE("every choice of a step is counted once, and drops are counted beside them") {
  for (const double capacity : {0.0, 0.7}) {
    HostMemory host;
    test::Run run(options_on({}, capacity), Mesh(), host);
    run.steps(1);
    const ChoiceCounts& counts = run.training.choices();
    REQUIRE(counts.blocks() == 2);  // two of the four blocks have experts
    std::int64_t dropped = 0;
    for (std::int64_t block = 0; block < 2; ++block) {
      const auto chosen = counts.chosen(block);
      INFO("capacity " << capacity << ", block " << block);
      CHECK(std::accumulate(chosen.begin(), chosen.end(), std::int64_t{0}) == choices_of_a_block);
      // An expert takes at most ⌈0.7 · 2 · 12 / 6⌉ = 3 tokens of each of the 12 sequences.
      const std::int64_t most_kept = capacity > 0 ? 12 * 6 * 3 : choices_of_a_block;
      CHECK(counts.dropped(block) >= choices_of_a_block - most_kept);
      dropped += counts.dropped(block);
    }
    CHECK((dropped > 0) == (capacity > 0));
    CHECK(counts.dropped_share() == static_cast<double>(dropped) / (2 * choices_of_a_block));
  }
}

TEST_CASE("recomputation, micro-batches and evaluations do not change the counts of choices") {
  for (const double capacity : {0.0, 0.7}) {
    const Steps expected = counts_alone(options_on({}, capacity));
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
      for (const std::int64_t micro_batch : {1, 4, 12}) {
        TrainingOptions options = options_on({}, capacity);
        options.recompute = recompute;
        options.batch.micro = micro_batch;
        INFO(static_cast<int>(recompute) << ", micro-batches of " << micro_batch);
        CHECK(counts_alone(options) == expected);
      }
    HostMemory host;
    test::Run run(options_on({}, capacity), Mesh(), host);
    run.steps(1);
    run.training.evaluate(run.read, 7);
    CHECK(run.training.choices().numbers == expected[0]);
    CHECK(run.steps(1).seen.choices == expected);
  }
}

TEST_CASE("all ranks of every layout know the same counts of choices", "[threads]") {
  for (const double capacity : {0.0, 0.7}) {
    const Steps expected = counts_alone(options_on({}, capacity));
    for (const Recompute recompute : {Recompute::none, Recompute::full})
      for (const char* word : {"dp4", "dp1.tp3", "dp1.tp2.sp", "dp1.pp2", "dp2.tp2.pp2.z1", "dp2.ep2", "dp2.tp2.ep2.z3.sp",
                               "dp2.pp2.ep2.zb-h1"}) {
        const Layout layout = parse_layout(word, 0);
        TrainingOptions options = options_on(layout, capacity);
        options.recompute = recompute;
        INFO(word << ", capacity " << capacity << ", recompute " << static_cast<int>(recompute));
        CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
                const Steps counts = test::Run(options, std::move(mesh), memory).steps(2).seen.choices;
                return counts == expected ? "" : fmt::format("counted {}, expected {}", counts, expected);
              }) == "");
      }
  }
}

TEST_CASE("tensor ranks that route the same tokens differently are noticed, on all ranks", "[threads]") {
  for (const char* numerics : {"fast", "exact"})
    for (const char* word : {"dp1.tp2", "dp1.tp3.sp", "dp2.tp2.ep2"}) {
      INFO(numerics << ", " << word);
      const Layout layout = parse_layout(word, 0);
      TrainingOptions options = options_on(layout, 0);
      options.numerics = named<NumericsKind>(numerics);
      CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
              test::Run run(options, std::move(mesh), memory);
              run.steps(2);
              if (run.training.mesh().tensor().rank() == 1)
                for (const ParameterPointer& p : run.training.parameters())
                  if (p->name == "block.1.mlp.router.weight") std::ranges::reverse(p->value.values<float>());
              try {
                run.steps(1);
              } catch (const Error& error) {
                return std::string(error.what()).find("in step 3, their counts of choices differ") != std::string::npos
                           ? ""
                           : error.what();
              }
              return "nothing was noticed";
            }) == "");
    }
}

}  // namespace
}  // namespace chorale
