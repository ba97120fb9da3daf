// Tests offload to a file. On every kind of layout, results must be bit-identical to a run without offload. The transferred
// bytes must equal the closed form, the plan and the counts of the file tier. Memory use must equal the plan. Other cases
// test refused options.
#include "parallel/step/offload.hpp"

#include <numeric>

#include "parallel/plan/plan.hpp"
#include "parallel/plan/room.hpp"
#include "parallel/state/fingerprint.hpp"
#include "src/tier/file_tier.hpp"
#include "tests/parallel/layouts.hpp"
#include "tests/parallel/plan/plan_requests.hpp"
#include "tests/refused.hpp"
#include "tests/temporary.hpp"

namespace chorale {
namespace {

struct Places {
  bool parameters, gradients, optimizer;
};

// Windows of 1024 elements begin and end inside tensors.
OffloadOptions offload(const Places& places, const std::filesystem::path& folder) {
  return {places.parameters, places.gradients, places.optimizer, folder.string(), 4096};
}

using test::trained;

TEST_CASE("offloading changes no bit, on any layout", "[threads]") {
  const test::TemporaryFolder folder;
  struct Row {
    const char* layout;
    Places places;
  };
  const Places all{true, true, true};
  const Row rows[] = {{"dp1.z3", all},
                      {"dp2.z3", all},
                      {"dp1.z3", {true, false, false}},
                      {"dp2.z2", {false, true, true}},
                      {"dp2.z1", {false, false, true}},
                      {"dp1", {false, false, true}},
                      {"dp2.tp2.z3.sp", all},
                      {"dp2.pp2.z3", all},
                      {"dp1.cp2.z3", all},
                      {"dp2.rep2.z3", all},
                      {"dp2.rep2.z2", {false, true, true}},
                      {"dp2.rep2.z3.hpz", all}};
  test::Sample fifth(5);
  for (const char* numerics : {"fast", "exact"})
    for (const auto& [word, places] : rows) {
      if (!fifth.takes()) continue;
      const Layout layout = parse_layout(word, 0);
      TrainingOptions options = test::options_for(numerics, layout);
      options.batch.micro = options.batch.global / layout.replicas() / 2;
      INFO(numerics << ", " << word);
      const test::Seen plain = trained(options, layout);
      options.offload = offload(places, folder.path());
      CHECK(test::difference(plain, trained(options, layout)) == "");
    }
}

TEST_CASE("offloading changes no bit of any type and optimizer, with or without master copies", "[threads]") {
  const test::TemporaryFolder folder;
  const Layout layout = parse_layout("dp2.z3", 0);
  for (const DType compute : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (const OptimizerKind optimizer : {OptimizerKind::adamw, OptimizerKind::sgd})
      for (const bool masters : {true, false}) {
        if (!masters && compute != DType::bf16) continue;
        INFO(name_of(compute) << ", " << name_of(optimizer) << ", " << masters);
        TrainingOptions options = test::options_for("fast", layout);
        options.compute = compute;
        options.optimizer.kind = optimizer;
        options.optimizer.masters = masters;
        options.batch.micro = 2;
        if (compute == DType::f16) {
          options.scaler.dynamic = true;
          options.scaler.scale = 1 << 14;
        }
        const test::Seen plain = trained(options, layout);
        options.offload = offload({true, true, true}, folder.path());
        CHECK(test::difference(plain, trained(options, layout)) == "");
      }
}

// A shard has n elements, including padding, and its values are f32. A step of two micro-batches transfers the following
// bytes. For gradients in bf16, it transfers half of the bytes of gradients:
//
//              read                                                              written
//   values     (2·2 + 1)·4n: two passes of two micro-batches, and the update     4n
//              and 4 times the tied table, because the embedding and the head both read it
//   gradients  (1 + 2)·4n: the second micro-batch, the norm and the update       2·4n
//   optimizer  8n                                                                8n
TEST_CASE("the bytes of a step are those of the formula, of the plan and of the file") {
  const test::TemporaryFolder folder;
  for (const auto& [compute, sums] :
       {std::pair{DType::f32, DType::f32}, {DType::bf16, DType::f32}, {DType::bf16, DType::bf16}}) {
    TrainingOptions options = test::options_for("fast", parse_layout("dp1.z3", 0));
    options.compute = compute;
    options.replicas.gradient_sums = sums;
    options.batch.micro = 6;
    options.offload = offload({true, true, true}, folder.path());
    HostMemory host;
    test::Run run(options, Mesh(parse_layout("dp1.z3", 1)), host);
    const auto& file = dynamic_cast<const FileTier&>(*run.training.memory().tier_memory());
    const std::int64_t table = options.shape.vocabulary * options.shape.width;
    std::int64_t n = 0;
    for (const Bucket& bucket : run.training.buckets().all()) n += bucket.value_shard.count();
    run.training.step(run.read);
    run.training.clear_tier_traffic();
    const std::int64_t read = file.read_bytes(), written = file.written_bytes();
    run.training.step(run.read);
    TierTraffic made = run.training.tier_passes();
    made.add(run.training.tier_updates(), 1);
    const RankPlan plan = plan_rank({.options = options, .layout = parse_layout("dp1.z3", 1)}, 0);
    CHECK((plan.tier_passes == run.training.tier_passes() && plan.tier_updates == run.training.tier_updates()));
    CHECK(plan.offloaded[static_cast<std::size_t>(Category::params)] ==
          run.training.memory().tier_ledger().current(Category::params));
    const auto of = [](const auto& bytes, Category c) { return bytes[static_cast<std::size_t>(c)]; };
    const std::int64_t e = size_of(compute);
    CHECK(of(made.read, Category::params) == e * ((compute == DType::f32 ? 5 : 4) * n + 4 * table));
    CHECK(of(made.written, Category::params) == e * n);
    CHECK(of(made.read, Category::grads) == 3 * size_of(sums) * n);
    CHECK(of(made.written, Category::grads) == 2 * size_of(sums) * n);
    CHECK(of(made.read, Category::optimizer) == (compute == DType::f32 ? 8 : 12) * n);
    CHECK(of(made.written, Category::optimizer) == of(made.read, Category::optimizer));
    const std::int64_t transfers = 40 * std::ssize(run.training.buckets().all());  // each transfer can include parts of two
                                                                                   // more blocks
    CHECK((file.read_bytes() - read >= made.all_read() &&
           file.read_bytes() - read < made.all_read() + transfers * 2 * FileTier::block));
    CHECK((file.written_bytes() - written >= made.all_written() &&
           file.written_bytes() - written < made.all_written() + transfers * 2 * FileTier::block));
  }
}

TEST_CASE("memory with offload is as planned, and nothing but windows and the units at work is in memory") {
  const test::TemporaryFolder folder;
  for (const char* word : {"dp1.z3", "dp2.z3", "dp2.z2", "dp1.pp2.z3"}) {
    const Layout layout = parse_layout(word, 0);
    TrainingOptions options = test::options_for("fast", layout);
    options.batch.micro = 3;
    options.offload = offload({layout.zero == 3, layout.zero >= 2, true}, folder.path());
    CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
            const int rank = mesh.world().rank();
            const RankPlan plan = plan_rank({.options = options, .layout = layout}, rank);
            test::Run run(options, std::move(mesh), memory);
            run.training.step(run.read);
            if (run.training.memory().ledger().current(Category::optimizer) != 0)
              return "states of the optimizer stayed in memory";
            return test::difference_of_memory(plan, observed(run.training));
          }) == "");
  }
}

// The table has 400,000 elements, which are more than one buffer of 1 MiB.
TEST_CASE("the fingerprint of a state in a file is that of the same state in memory") {
  const test::TemporaryFolder folder;
  const Layout layout = parse_layout("dp1.z3", 0);
  TrainingOptions options = test::options_for("fast", layout);
  options.shape.vocabulary = 400'000 / options.shape.width;
  const auto print = [&] {
    HostMemory host;
    SystemClock clock;
    Training training(options, Mesh(parse_layout("dp1.z3", 1)), host, clock);
    return fingerprint(training);
  };
  const auto in_memory = print();
  options.offload = offload({true, true, true}, folder.path());
  CHECK(print() == in_memory);
}

TEST_CASE("what remains in memory decides whether a layout has room, and the error says what to place in a file") {
  const Layout layout = parse_layout("dp1.z3", 0);
  TrainingOptions options = test::options_for("fast", layout);
  options.shape.layers = 24;
  options.batch.micro = 1;
  options.offload = offload({false, false, false}, ".");
  const OptionsOf options_of = [&](const Layout&) { return options; };
  const auto peak = [&](const Places& places) {
    TrainingOptions placed = options;
    placed.offload = offload(places, ".");
    return plan_rank({.options = placed, .layout = layout}, 0).peak_bytes;
  };
  const std::int64_t values_and_gradients = 2 * 4 * options.shape.parameters();
  const std::int64_t some = peak({false, false, true}), most = peak({false, true, true}), all = peak({true, true, true});
  REQUIRE((all < values_and_gradients / 2 && most < values_and_gradients && most < some));
  const LayoutLimits limits{options.shape, 1, options.batch.global, options.batch.micro};
  const auto refused = [&](std::int64_t limit, const Layout& on) {
    options.memory.limit = limit;
    return test::refused([&] { require_room(on, limits, options_of); });
  };
  const Layout plain = parse_layout("dp1", 0);
  CHECK_THAT(refused(some, layout), says("try --place optimizer=file") && !says("gradients=file"));
  CHECK_THAT(refused(most, layout), says("try --place gradients=file,optimizer=file") && !says("parameters=file"));
  CHECK_THAT(refused(all, layout), says("--place parameters=file,gradients=file,optimizer=file"));
  CHECK_THAT(refused(all, plain), says("try --zero 3 with --place parameters=file,gradients=file,optimizer=file"));
  CHECK_THAT(refused(all / 2, layout),
             says("try --place parameters=file,gradients=file,optimizer=file with --recompute full, or"));
  CHECK_THAT(refused(all / 2, plain), says("try --zero 3 with --place") && says("optimizer=file and --recompute full, or"));
  CHECK_THAT(refused(10'000, layout), !says("--place"));
  options.offload = offload({true, true, true}, ".");
  options.memory.limit = all;
  CHECK((has_room(layout, options_of) && !shortage_of(layout, options_of, "")));
  options.memory.limit = all - 1;
  CHECK(!has_room(layout, options_of));
  CHECK_THAT(refused(all / 2, layout), !says("--place"));
}

TEST_CASE("the bytes in a file are known without the plan of a step") {
  for (const char* word : {"dp1.z3", "dp3.z3", "dp2.z2", "dp1.pp2.z3"}) {
    const Layout layout = parse_layout(word, 0);
    PlanRequest request{.options = test::options_for("fast", layout), .layout = layout};
    request.options.offload = offload({layout.zero == 3, layout.zero >= 2, true}, ".");
    for (int rank = 0; rank < static_cast<int>(layout.ranks()); ++rank) {
      const RankPlan plan = plan_rank(request, rank);
      CHECK(planned_in_file(request, rank) ==
            std::accumulate(plan.offloaded.begin(), plan.offloaded.end(), std::int64_t{0}));
    }
  }
}

TEST_CASE("shards that a layout does not have cannot be offloaded") {
  const auto refused = [](const char* word, const Places& places) {
    const Layout layout = parse_layout(word, 0);
    TrainingOptions options = test::options_for("fast", layout);
    options.offload = offload(places, ".");
    return test::refused([&] { plan_rank({.options = options, .layout = layout}, 0); });
  };
  CHECK_THAT(refused("dp2.z2", {true, false, false}), says("parameters can be offloaded only") && says("--zero 3"));
  CHECK_THAT(refused("dp2.z1", {false, true, false}), says("gradients can be offloaded only") && says("--zero 2"));
  CHECK(refused("dp2", {false, false, true}) == "accepted");
}

}  // namespace
}  // namespace chorale
