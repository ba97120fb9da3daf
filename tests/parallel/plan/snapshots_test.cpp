// Compares the planned bytes of snapshots with those that each rank of a real training saves.
#include "parallel/plan/snapshots.hpp"

#include "parallel/state/resume.hpp"
#include "parallel/state/snapshot.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"
#include "tests/parallel/plan/plan_requests.hpp"

namespace chorale {
namespace {

using test::request_for;

// Returns the bytes that each rank saves.
std::vector<std::int64_t> saved_by_ranks(const PlanRequest& request) {
  std::vector<std::int64_t> saved(static_cast<std::size_t>(request.layout.ranks()));
  CHECK(test::on_thread_mesh(
            request.layout,
            [&](Mesh mesh, Memory& memory) {
              const auto rank = static_cast<std::size_t>(mesh.world().rank());
              test::Run run(request.options, std::move(mesh), memory);
              for (const StateTensor& tensor : state_to_save(run.training)) saved[rank] += tensor.data.bytes();
              return std::string();
            },
            request.hosts) == "");
  return saved;
}

// The ranks of these runs save what is planned, and together every element once.
void planned_is_saved(const PlanRequest& request) {
  INFO(to_string(request.layout) << " in " << name_of(request.options.compute));
  const std::vector<std::int64_t> saved = saved_by_ranks(request);
  std::int64_t all = 0;
  for (std::size_t rank = 0; rank < saved.size(); ++rank) {
    INFO("rank " << rank);
    CHECK(planned_to_save(request, static_cast<int>(rank)) == saved[rank]);
    all += saved[rank];
  }
  const PlannedSnapshots plan = plan_snapshots(request), sampled = plan_snapshots(request, 0);
  CHECK((plan.is_exact && plan.bytes == std::ranges::max(saved)));
  CHECK(plan.bytes == saved[static_cast<std::size_t>(plan.fullest)]);
  CHECK(plan.host_bytes == kept_generations * all);
  CHECK((!sampled.is_exact && sampled.host_bytes == -1));  // the hosts of many ranks are not known
  CHECK(sampled.bytes == saved[static_cast<std::size_t>(sampled.fullest)]);
  CHECK(static_cast<double>(sampled.bytes) > 0.9 * static_cast<double>(plan.bytes));
}

std::vector<Layout> all_layouts_of(int world) { return all_layouts({request_for({}, "ring").options.shape, world, 12, 1}); }

TEST_CASE("each rank saves the planned bytes", "[threads]") {
  for (const Layout& layout : test::covering({1, 2, 4, 6, 8}, all_layouts_of)) planned_is_saved(request_for(layout, "ring"));
}

TEST_CASE("each rank saves the planned bytes, whatever the types, the optimizer and the numerics", "[threads]") {
  for (const char* word : {"dp1", "dp2.tp2.pp2.z1.sp", "dp3.z3", "dp2.pp2.z2", "dp1.tp3", "dp2.rep2.z3.hpz", "dp2.cp2.z1"})
    for (const DType type : {DType::f32, DType::bf16, DType::f16, DType::f64})
      for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::sgd}) {
        PlanRequest request = request_for(parse_layout(word, 0), "ring", type);
        if (request.layout.stages() == 1) request.options.batch.micro = 1;
        request.options.optimizer.kind = kind;
        planned_is_saved(request);
        if (type == DType::bf16) {
          request.options.optimizer.masters = false;
          planned_is_saved(request);
        }
        if (type != DType::f32) continue;
        request.options.numerics = NumericsKind::exact;
        planned_is_saved(request);
      }
}

TEST_CASE("each rank saves the planned bytes of experts", "[threads]") {
  for (const char* word : {"dp2.ep2", "dp4.ep2.z1", "dp2.tp2.ep2.sp", "dp2.tp2.ep2.z3", "dp1.pp2", "dp1.cp2.ep2"})
    for (const bool by_bias : {false, true}) {
      INFO((by_bias ? "chosen by score + bias" : "chosen by score"));
      PlanRequest request = request_for(parse_layout(word, 0), "ring");
      request.options.shape = test::small_moe();
      if (request.layout.stages() == 1) request.options.batch.micro = 1;
      request.options.shape.experts.bias = by_bias;
      if (by_bias) request.options.shape.experts.score = ScoreFunction::sigmoid;
      planned_is_saved(request);
    }
}

// A run with delayed updates also saves the values that its layers use.
TEST_CASE("each rank saves the planned bytes of delayed updates", "[threads]") {
  for (const char* word : {"dp1", "dp2.z1", "dp2.tp2.z3", "dp1.pp2"}) {
    PlanRequest request = request_for(parse_layout(word, 0), "ring", DType::bf16);
    const std::vector<std::int64_t> usual = saved_by_ranks(request);
    request.options.update = UpdateTime::delayed;
    planned_is_saved(request);
    CHECK(saved_by_ranks(request)[0] > usual[0]);
  }
}

TEST_CASE("the fullest host is planned from all its ranks") {
  for (const char* word : {"dp4", "dp4.z1", "dp1.tp4", "dp1.pp4", "dp2.pp2", "dp2.tp2.z1.sp"})
    for (const std::vector<int>& hosts : {std::vector{0, 0, 1, 1}, std::vector{0, 1, 1, 1}, std::vector{1, 0, 0, 1}}) {
      PlanRequest request = request_for(parse_layout(word, 0), "ring");
      request.hosts = hosts;
      std::int64_t bytes[2] = {0, 0};
      for (int rank = 0; rank < 4; ++rank) bytes[hosts[static_cast<std::size_t>(rank)]] += planned_to_save(request, rank);
      INFO(word);
      CHECK(plan_snapshots(request).host_bytes == 2 * std::max(bytes[0], bytes[1]));
      const bool both = std::string(word) == "dp1.pp4" || std::string(word) == "dp2.pp2";  // stages are on both hosts
      const std::int64_t first = bytes[hosts[0]], most = std::max(bytes[0], bytes[1]);
      if (both || most == first) CHECK(plan_snapshots(request, 3).host_bytes == 2 * most);
    }
}

}  // namespace
}  // namespace chorale
