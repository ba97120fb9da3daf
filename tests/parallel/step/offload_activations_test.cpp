// Tests activation offload: full recomputation keeps its activations in a file. On every kind of layout, results must be
// bit-identical to a run without offload. The transferred bytes must equal the closed form, the plan and the counts of the
// file tier. Memory use must not grow with the number of blocks.
#include "parallel/plan/plan.hpp"
#include "src/tier/file_tier.hpp"
#include "tests/parallel/layouts.hpp"
#include "tests/parallel/plan/plan_requests.hpp"
#include "tests/refused.hpp"
#include "tests/temporary.hpp"

namespace chorale {
namespace {

constexpr auto activations = static_cast<std::size_t>(Category::activations);

TrainingOptions recomputing(const char* numerics, const Layout& layout) {
  TrainingOptions options = test::options_for(numerics, layout);
  options.recompute = Recompute::full;
  options.batch.micro = std::max<std::int64_t>(1, options.batch.global / layout.replicas() / (layout.stages() > 1 ? 6 : 2));
  return options;
}

OffloadOptions to_file(const test::TemporaryFolder& folder) { return {.folder = folder.path(), .activations = true}; }

TEST_CASE("activations in a file change no bit, on any layout", "[threads]") {
  const test::TemporaryFolder folder;
  struct Row {
    const char* layout;
    bool partition = false, experts = false;
  };
  const Row rows[] = {{"dp1"},
                      {"dp2.z1"},
                      {"dp2.z3"},
                      {"dp1.tp2"},
                      {"dp1.tp2", true},
                      {"dp1.tp2.pp2", true},
                      {"dp1.tp2.sp"},
                      {"dp1.pp2"},
                      {"dp1.pp2.gpipe"},
                      {"dp1.pp2.interleaved.v2"},
                      {"dp1.pp2.zb-h1"},
                      {"dp2.pp2.z3.zb-h1"},
                      {"dp1.cp2"},
                      {"dp1.cp2.tp2", true},
                      {"dp2.rep2.z3"},
                      {"dp2.ep2", false, true},
                      {"dp2.pp2.ep2.z2", false, true}};
  test::Sample third(3);
  for (const char* numerics : {"fast", "exact"})
    for (const auto& [word, partition, experts] : rows) {
      if (!third.takes()) continue;
      const Layout layout = parse_layout(word, 0);
      TrainingOptions options = recomputing(numerics, layout);
      options.memory.partition_activations = partition;
      if (experts) options.shape = test::small_moe();
      INFO(numerics << ", " << word << (partition ? ", partitioned" : ""));
      const test::Seen plain = test::trained(options, layout);
      options.offload = to_file(folder);
      CHECK(test::difference(plain, test::trained(options, layout)) == "");
    }
}

TEST_CASE("activations in a file change no bit of any type, or with all else there too", "[threads]") {
  const test::TemporaryFolder folder;
  const Layout layout = parse_layout("dp2.z3", 0);
  for (const DType compute : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (const bool all : {false, true}) {
      INFO(name_of(compute) << (all ? ", all" : ""));
      TrainingOptions options = recomputing("fast", layout);
      options.compute = compute;
      if (compute == DType::f16) {
        options.scaler.dynamic = true;
        options.scaler.scale = 1 << 14;
      }
      const test::Seen plain = test::trained(options, layout);
      options.offload = to_file(folder);
      if (all) options.offload.parameters = options.offload.gradients = options.offload.optimizer = true;
      CHECK(test::difference(plain, test::trained(options, layout)) == "");
    }
}

// For each micro-batch, a rank writes and reads the input of each of its blocks once. In an evaluation, the rank writes and
// reads nothing. The file holds the inputs of the micro-batches in flight. Under 1f1b, S − s micro-batches are in flight on
// stage s of S.
TEST_CASE("the bytes of kept inputs are those of the formula, of the plan and of the file") {
  const test::TemporaryFolder folder;
  struct Row {
    const char* layout;
    std::int64_t parts;  // number of parts into which the tensor ranks divide a block input
    bool partition = false;
  };
  for (const auto& [word, parts, partition] :
       {Row{"dp1", 1}, Row{"dp2", 1}, Row{"dp1.tp2", 1}, Row{"dp1.tp2", 2, true}, Row{"dp1.tp2.sp", 2}, Row{"dp1.cp2", 1},
        Row{"dp1.pp2", 1}, Row{"dp1.pp4", 1}}) {
    const Layout layout = parse_layout(word, 0);
    TrainingOptions options = recomputing("fast", layout);
    options.memory.partition_activations = partition;
    options.offload = to_file(folder);
    INFO(word << (partition ? ", partitioned" : ""));
    CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
            const RankPlan plan = plan_rank({.options = options, .layout = layout}, mesh.world().rank());
            const std::int64_t stage = mesh.pipeline().rank(), stages = layout.stages();
            test::Run run(options, std::move(mesh), memory);
            const auto& file = dynamic_cast<const FileTier&>(*run.training.memory().tier_memory());
            const ModelShape& shape = options.shape;
            const std::int64_t input =
                options.batch.micro * shape.sequence / layout.context_ranks() / parts * shape.width * 4;
            const std::int64_t micro_batches = options.batch.global / layout.replicas() / options.batch.micro;
            const std::int64_t blocks = shape.layers / stages;
            const Ledger& ledger = run.training.memory().tier_ledger();
            for (int step = 1; step <= 3; ++step) {
              run.training.clear_tier_traffic();
              const std::int64_t read = file.read_bytes(), written = file.written_bytes();
              run.steps(1);
              const TierTraffic& made = run.training.tier_passes();
              const std::int64_t expected = micro_batches * blocks * input;
              if (made.read[activations] != expected || made.written[activations] != expected || !(made == plan.tier_passes))
                return fmt::format("expected {}, read {}, wrote {}, planned {} and {}", expected, made.read[activations],
                                   made.written[activations], plan.tier_passes.read[activations],
                                   plan.tier_passes.written[activations]);
              const std::int64_t whole = (input + FileTier::block - 1) / FileTier::block * FileTier::block;
              const std::int64_t by_file = micro_batches * blocks * whole;
              if (file.read_bytes() - read != by_file || file.written_bytes() - written != by_file)
                return fmt::format("expected blocks of {}, read {}, wrote {}", by_file, file.read_bytes() - read,
                                   file.written_bytes() - written);
              const std::int64_t in_flight = std::min(stages - stage, micro_batches) * blocks * input;
              if (ledger.current(Category::activations) != 0 || ledger.peak(Category::activations) != in_flight ||
                  plan.offloaded[activations] != in_flight)
                return fmt::format("{} in the file after step {}, at most {}, expected {}, planned {}",
                                   ledger.current(Category::activations), step, ledger.peak(Category::activations),
                                   in_flight, plan.offloaded[activations]);
            }
            run.training.clear_tier_traffic();
            run.training.evaluate(run.read, 7);
            return run.training.tier_passes() == TierTraffic() ? "" : "an evaluation moved something";
          }) == "");
  }
}

TEST_CASE("memory with activations in a file is as planned") {
  const test::TemporaryFolder folder;
  for (const char* word : {"dp1", "dp2.z3", "dp1.tp2.sp", "dp1.pp2", "dp1.pp2.zb-h1"}) {
    const Layout layout = parse_layout(word, 0);
    TrainingOptions options = recomputing("fast", layout);
    options.offload = to_file(folder);
    INFO(word);
    CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
            const RankPlan plan = plan_rank({.options = options, .layout = layout}, mesh.world().rank());
            test::Run run(options, std::move(mesh), memory);
            run.steps(1);
            return test::difference_of_memory(plan, observed(run.training));
          }) == "");
  }
}

// Each additional block keeps one more input for each micro-batch in flight. With a file, only two block inputs are in
// memory. With a pipeline, memory also holds a message at the peak.
TEST_CASE("with activations in a file, the peak of memory does not grow with the number of blocks") {
  for (const auto& [word, in_memory] : {std::pair{"dp1", 2}, std::pair{"dp1.pp2", 3}}) {
    const Layout layout = parse_layout(word, 0);
    const auto peak = [&](std::int64_t layers, bool offload) {
      TrainingOptions options = recomputing("fast", layout);
      options.shape.layers = layers;
      options.offload.activations = offload;
      return plan_rank({.options = options, .layout = layout}, 0).peak[activations];
    };
    const TrainingOptions options = recomputing("fast", layout);
    const std::int64_t input = options.batch.micro * options.shape.sequence * options.shape.width * 4;
    INFO(word);
    CHECK(peak(16, false) == peak(8, false) + 8 * input);  // 8 / S blocks per stage; S micro-batches are in flight on stage
                                                           // 0
    CHECK(peak(16, true) == peak(8, true));
    CHECK(peak(16, false) - peak(16, true) == (16 - in_memory) * input - 2 * FileTier::block);  // page-aligned copies
  }
}

TEST_CASE("without full recomputation, activations cannot be offloaded") {
  for (const Recompute recompute : {Recompute::none, Recompute::selective}) {
    TrainingOptions options = test::options_for("fast", {});
    options.recompute = recompute;
    options.offload.activations = true;
    CHECK_THAT(test::refused([&] { plan_rank({.options = options, .layout = Layout{}}, 0); }),
               says("only the inputs of blocks") && says("--recompute full"));
  }
}

TEST_CASE("kept inputs come back in reverse order, whatever their sizes, and may be abandoned") {
  const test::TemporaryFolder folder;
  HostMemory host;
  FileTier file(folder.path());
  Ledger here, there;
  Allocator memory(host, here), tier(file, there);
  TierTraffic traffic;
  const std::int64_t sizes[] = {1, 1023, 1024, 5000, 3, 1 << 20};
  const auto filled = [&](std::int64_t count) {
    const Tensor x(memory, {count}, DType::f32, Category::workspace);
    for (std::int64_t i = 0; i < count; ++i) x.values<float>()[static_cast<std::size_t>(i)] = static_cast<float>(count + i);
    return x;
  };
  for (const bool abandoned : {false, true}) {
    KeptInputs kept(memory, tier, traffic);
    for (const std::int64_t count : sizes) kept.keep(filled(count));
    if (abandoned) break;       // with writes in flight
    std::vector<Tensor> taken;  // must stay valid after later takes
    for (std::size_t i = std::size(sizes); i-- > 0;) taken.push_back(kept.take());
    for (std::size_t i = 0; i < taken.size(); ++i) {
      const std::int64_t count = sizes[std::size(sizes) - 1 - i];
      REQUIRE(taken[i].count() == count);
      const auto expected = filled(count), got = taken[i];
      CHECK(std::ranges::equal(got.values<float>(), expected.values<float>()));
    }
    CHECK(kept.empty());
    CHECK_THROWS_WITH(kept.take(), says("takes more inputs of blocks"));
  }
  CHECK((here.total() == 0 && there.total() == 0));
}

}  // namespace
}  // namespace chorale
