// Compares simulated copies between accelerator memory and host memory with plans and closed forms.
#include "parallel/plan/plan.hpp"
#include "parallel/prediction/executor.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/prediction/small_system.hpp"

namespace chorale::test {
namespace {

struct Placed {
  const char* layout;
  bool parameters, gradients, optimizer, activations;
};

StepRequest placed_step(const Placed& placed, std::int64_t batch = 64) {
  StepRequest request = small_step(placed.layout, batch);
  request.system.host.offload = 10e9;
  request.system.host.memory = 200e9;
  TrainingOptions& o = request.plan.options;
  o.offload = {.parameters = placed.parameters,
               .gradients = placed.gradients,
               .optimizer = placed.optimizer,
               .activations = placed.activations};
  o.offload.to_host = true;
  if (placed.activations) o.recompute = Recompute::full;
  return request;
}

double waits_for_host(const PredictedStep& step) {
  const auto& waits = step.step.classes[0].waits;
  const auto found = waits.find("host");
  return found == waits.end() ? 0 : found->second;
}

}  // namespace

TEST_CASE("a step in virtual time copies as many bytes to the host and back as its plan says") {
  const auto placed = GENERATE(Placed{"dp4", false, false, true, false}, Placed{"dp4.z1", false, false, true, false},
                               Placed{"dp4.z2", false, true, true, false}, Placed{"dp8.z3", true, true, true, false},
                               Placed{"dp4.z3", true, false, false, false}, Placed{"dp2.pp2.z1", false, false, true, false},
                               Placed{"dp4", false, false, false, true}, Placed{"dp2.tp2.pp2", false, false, false, true});
  const StepRequest request = placed_step(placed);
  const PredictedStep step = predict_step(request);
  for (std::size_t c = 0; c < step.ranks.classes.size(); ++c) {
    PlanRequest plan = request.plan;
    plan.hosts = hosts_of(request.system, plan.layout.ranks());
    const RankPlan planned = plan_rank(plan, step.ranks.classes[c].rank);
    std::int64_t bytes = 0;
    for (const TierTraffic& t : {planned.tier_passes, planned.tier_updates}) bytes += t.all_read() + t.all_written();
    INFO(placed.layout << ", class " << c);
    CHECK(bytes > 0);
    CHECK(step.step.classes[c].copied == bytes);
  }
}

TEST_CASE("copies that take no time leave the time of a step as it is") {
  for (const Placed& placed : {Placed{"dp4", false, false, false, true}, Placed{"dp4.z3", true, true, false, false}}) {
    StepRequest request = placed_step(placed);
    request.system.host.offload = request.system.host.memory = 1e18;
    StepRequest in_memory = request;
    in_memory.plan.options.offload = {};
    INFO(placed.layout);
    CHECK(predict_step(request).seconds == Approx(predict_step(in_memory).seconds).epsilon(1e-3));
  }
}

TEST_CASE("on a slow link, a step takes what its copies take") {
  // Activations are written in the forward pass and read in the backward pass. On one rank, all these copies wait for the
  // link between accelerator and host.
  StepRequest request = placed_step({"dp1", false, false, false, true}, 4);
  request.system.host.offload = 1e5;
  const PredictedStep step = predict_step(request);
  const double link = static_cast<double>(step.step.classes[0].copied) / 1e5;
  CHECK(step.seconds == Approx(link).epsilon(0.05));
  CHECK(waits_for_host(step) == Approx(link).epsilon(0.05));
}

TEST_CASE("the host updates at the speed of its memory, which its accelerators share") {
  StepRequest request = placed_step({"dp4.z1", false, false, true, false});
  request.system.host.offload = 1e18;
  const auto update = [](const StepRequest& r) {
    return predict_step(r).step.classes[0].kernels.seconds[static_cast<std::size_t>(Spent::update)];
  };
  const double before = update(request);
  request.system.host.memory /= 4;
  CHECK(update(request) == Approx(4 * before).epsilon(0.02));  // the accelerator computes the norm of the gradients
}

TEST_CASE("classes of ranks that copy give the same times as every rank by itself, bit for bit") {
  for (const Placed& placed :
       {Placed{"dp8.z3", true, true, true, false}, Placed{"dp4.tp2.pp2.z1", false, false, true, false},
        Placed{"dp2.pp2", false, false, false, true}}) {
    StepRequest request = placed_step(placed, 96);
    const PredictedStep folded = predict_step(request);
    request.folded = false;
    INFO(placed.layout);
    CHECK(folded.ranks.classes.size() < static_cast<std::size_t>(request.plan.layout.ranks()));
    CHECK(folded.seconds == predict_step(request).seconds);
  }
}

TEST_CASE("copies are refused without their speeds, to a file, and if updates overlap with passes") {
  StepRequest request = placed_step({"dp4.z1", false, false, true, false});
  CHECK_NOTHROW(require_predictable(request));
  const auto refuses = [](StepRequest r, auto change, const std::string& says) {
    change(r);
    CHECK_THROWS_WITH(require_predictable(r), Catch::Contains(says));
  };
  refuses(
      request, [](StepRequest& r) { r.system.host.offload = 0; }, "add offload and memory");
  refuses(
      request, [](StepRequest& r) { r.system.host.memory = 0; }, "no memory");
  refuses(
      request, [](StepRequest& r) { r.plan.options.offload.to_host = false; }, "not to a file");
  refuses(
      request, [](StepRequest& r) { r.plan.options.update = UpdateTime::delayed; }, "--update delayed");
}

}  // namespace chorale::test
