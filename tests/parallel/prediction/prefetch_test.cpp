// Tests --prefetch-units, the number of units that ZeRO-3 gathers ahead. Results and sent bytes must not depend on this
// number, and memory use must be as planned. `auto` must choose more than one unit only if the costs in the machine file
// predict a gain.
#include "parallel/prediction/prefetch.hpp"

#include "parallel/prediction/cpu_step.hpp"
#include "tests/parallel/hybrid.hpp"
#include "tests/parallel/plan/plan_requests.hpp"
#include "tests/temporary.hpp"

namespace chorale {
namespace {

TrainingOptions options_of(const Layout& layout, std::int64_t units) {
  TrainingOptions options = test::hybrid_options("fast", layout);
  options.replicas.prefetch_units = units;
  return options;
}

// If ranks made their calls in different orders, the calls would fail. So the test also shows that the order is the same on
// all ranks.
TEST_CASE("no bit depends on how many units ahead values are gathered", "[threads]") {
  const test::TemporaryFolder folder;
  test::Sample third(3), third_units(3);
  for (const char* word : {"dp1.z3", "dp2.z3", "dp4.z3", "dp2.rep2.z3", "dp2.rep2.z3.hpz", "dp2.tp2.z3.sp", "dp2.pp2.z3",
                           "dp2.pp2.v2.interleaved.z3", "dp2.cp2.z3", "dp2.ep2.z3", "dp2.z2"})
    for (const bool in_file : {false, true}) {
      const Layout layout = parse_layout(word, 0);
      if (in_file && layout.zero < 3) continue;
      const auto seen = [&](std::int64_t units) {
        TrainingOptions options = options_of(layout, units);
        if (layout.expert_ranks() > 1) options.shape = test::small_moe(0.75);
        if (in_file) options.offload = {true, true, true, folder.path().string(), 4096};
        return test::seen_on(layout, options, "auto");
      };
      if (!third.takes()) continue;
      const test::Seen expected = seen(1);
      for (const std::int64_t units : {2, 3, 4, 8}) {
        if (!third_units.takes()) continue;
        INFO(word << ", " << units << " units" << (in_file ? ", in a file" : ""));
        CHECK(difference(expected, seen(units)) == "");
      }
    }
}

TEST_CASE("memory and bytes are as planned however many units ahead values are gathered, and bytes do not depend on it",
          "[threads]") {
  const test::TemporaryFolder folder;
  test::Sample third(3);
  for (const char* word : {"dp2.z3", "dp2.rep2.z3.hpz", "dp2.pp2.z3", "dp2.tp2.z3.sp"})
    for (const bool in_file : {false, true}) {
      const Layout layout = parse_layout(word, 0);
      const auto request_for = [&](std::int64_t units) {
        PlanRequest request{.options = options_of(layout, units), .layout = layout};
        if (in_file) request.options.offload = {true, true, true, folder.path().string(), 4096};
        request.backends = {{"", "threads"}};
        request.algorithms = {{"", "ring"}};
        return request;
      };
      for (const std::int64_t units : {1, 2, 3, 4, 8}) {
        if (!third.takes()) continue;
        INFO(word << ", " << units << " units" << (in_file ? ", in a file" : ""));
        const PlanRequest request = request_for(units);
        CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
                const int rank = mesh.world().rank();
                const RankPlan plan = plan_rank(request, rank), with_one = plan_rank(request_for(1), rank);
                Mesh by_ring = std::move(mesh);
                test::Run run(request.options, std::move(by_ring), memory);
                clear_accounts(run.training.mesh());
                run.training.clear_tier_traffic();
                run.training.step(run.read);
                if (const std::string other = test::difference_of_memory(plan, observed(run.training)); !other.empty())
                  return other;
                if (!(plan.tier_passes == run.training.tier_passes())) return "other bytes moved between file and memory";
                if (!(plan.tier_passes == with_one.tier_passes)) return "the bytes read from the file depend on the units";
                return difference(plan.axes, with_one.axes, true);
              }) == "");
      }
    }
}

// If the head is untied, each unit is one bucket. While a unit computes, all values of this unit and of the units ahead are
// in memory.
TEST_CASE("one unit and the units ahead are whole at once") {
  const Layout layout = parse_layout("dp2.z3", 0);
  for (const std::int64_t ahead : {1, 2, 3, 4, 8}) {
    TrainingOptions options = options_of(layout, ahead);
    options.shape.tied = false;
    test::Pretence here(options, layout, 0);
    std::vector<std::int64_t> units;
    std::int64_t shards = 0, most = 0;
    for (const Bucket& bucket : here.training.buckets().all()) {
      units.push_back(4 * bucket.count);
      shards += 2 * bucket.count;
    }
    REQUIRE(units.size() == static_cast<std::size_t>(options.shape.layers) + 2);
    for (std::size_t first = 0; first < units.size(); ++first) {
      std::int64_t together = 0;
      for (std::size_t i = first; i < units.size() && i <= first + static_cast<std::size_t>(ahead); ++i)
        together += units[i];
      most = std::max(most, together);
    }
    INFO(ahead);
    const RankPlan plan = plan_rank({.options = options, .layout = layout}, 0);
    CHECK(plan.peak[static_cast<std::size_t>(Category::params)] == shards + most);
  }
}

// A request for two hosts whose products and attention run at `flops`.
PlanRequest across(double flops) {
  Machine machine{.signature = machine_signature(), .cores = 2};
  machine.computes.push_back(
      {.type = "f32", .ranks = 2, .product = flops, .attention = flops, .elements = 1e12, .update = 1e12});
  Level level{.backend = "ucx", .ranks = 2};
  level.prices = {{"latency", {1e-6}}, {"cross", {1e9, 1e9, 1e9, 1e9, 1e9}}, {"copy", {1e9}}};
  Level network = level;
  network.span = "network";
  network.hosts = 2;
  network.prices["link"] = {1e9};
  machine.levels = {level, network};
  const Layout layout = parse_layout("dp2.z3", 0);
  PlanRequest request{.options = test::hybrid_options("fast", layout), .layout = layout};
  request.options.shape.layers = 12;
  request.backends = {{"", "ucx"}};
  request.hosts = {0, 1};
  request.selector = std::make_shared<const Selector>(TuningTable{}, machine);
  return request;
}

TEST_CASE("auto gathers one unit ahead if computing hides a gather, and more if gathers of large units take longer") {
  CHECK(fewest_units_ahead(across(1e9)).units == 1);
  const PrefetchChoice far = fewest_units_ahead(across(1e11));
  CHECK(far.units > 1);
  PlanRequest request = across(1e11);
  const auto time = [&](std::int64_t units) {
    request.options.replicas.prefetch_units = units;
    return predict_cpu_step(request).time.seconds;
  };
  CHECK(time(far.units) < 0.97 * time(1));
  for (const std::int64_t units : {2, 4, 8}) CHECK(time(far.units) <= 1.02 * time(units));
  // `auto` must not gather more units than fit into memory.
  request.options.replicas.prefetch_units = 1;
  request.options.memory.limit = plan_rank(request, fullest_rank(request.options, request.layout, 0)).peak_bytes;
  CHECK(fewest_units_ahead(request).units == 1);
}

TEST_CASE("auto gathers one unit ahead without prices, and says why") {
  PlanRequest request = across(1e11);
  request.selector = nullptr;
  CHECK(fewest_units_ahead(request).units == 1);
  CHECK_THAT(fewest_units_ahead(request).why, says("the machine file has no compute rates of f32"));
  request.layout = parse_layout("dp2.z2", 0);
  CHECK(fewest_units_ahead(request).why == "");
  request.layout = parse_layout("dp1.z3", 0);
  CHECK_THAT(fewest_units_ahead(request).why, says("nothing is gathered"));
}

}  // namespace
}  // namespace chorale
