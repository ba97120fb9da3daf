// Compares simulated copies between accelerator memory and host memory, or a file, with plans and closed forms.
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

StepRequest in_file(StepRequest request, double read, double write) {
  request.plan.options.offload.to_host = false;
  request.system.host.offload = 1e18;
  request.system.host.memory = 0;
  request.system.host.file_read = read;
  request.system.host.file_write = write;
  return request;
}

StepRequest updated(StepRequest request, UpdateTime update) {
  request.plan.options.update = update;
  if (update == UpdateTime::overlapped) request.plan.options.optimizer.clip = 0;
  return request;
}

constexpr UpdateTime beside_passes[] = {UpdateTime::overlapped, UpdateTime::speculative, UpdateTime::delayed};

RankPlan plan_of(const StepRequest& request, const PredictedStep& step, std::size_t c = 0) {
  PlanRequest plan = request.plan;
  plan.hosts = hosts_of(request.system, plan.layout.ranks());
  return plan_rank(plan, step.ranks.classes[c].rank);
}

double waits_for(const PredictedStep& step, const char* where) {
  const auto& waits = step.step.classes[0].waits;
  const auto found = waits.find(where);
  return found == waits.end() ? 0 : found->second;
}

}  // namespace

TEST_CASE("a step in virtual time copies as many bytes to the host and back as its plan says") {
  const auto placed = GENERATE(Placed{"dp4", false, false, true, false}, Placed{"dp4.z1", false, false, true, false},
                               Placed{"dp4.z2", false, true, true, false}, Placed{"dp8.z3", true, true, true, false},
                               Placed{"dp4.z3", true, false, false, false}, Placed{"dp2.pp2.z1", false, false, true, false},
                               Placed{"dp4", false, false, false, true}, Placed{"dp2.tp2.pp2", false, false, false, true});
  for (const bool to_host : {true, false})
    for (const UpdateTime update :
         {UpdateTime::after, UpdateTime::overlapped, UpdateTime::speculative, UpdateTime::delayed}) {
      StepRequest request = updated(placed_step(placed), update);
      if (!to_host) request = in_file(request, 2e9, 1e9);
      const PredictedStep step = predict_step(request);
      for (std::size_t c = 0; c < step.ranks.classes.size(); ++c) {
        const RankPlan planned = plan_of(request, step, c);
        std::int64_t bytes = 0;
        for (const TierTraffic& t : {planned.tier_passes, planned.tier_updates}) bytes += t.all_read() + t.all_written();
        INFO(placed.layout << ", class " << c << ", update " << name_of(update) << (to_host ? ", host" : ", file"));
        CHECK(bytes > 0);
        CHECK(step.step.classes[c].copied == bytes);
      }
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
  CHECK(waits_for(step, "host") == Approx(link).epsilon(0.05));
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

TEST_CASE("from a slow file, a step takes what its reads or its writes take, whichever take longer") {
  for (const auto& [read, write] : {std::pair{1e5, 1e9}, std::pair{1e9, 1e5}}) {
    StepRequest request = in_file(placed_step({"dp1", false, false, true, false}, 4), read, write);
    request.system.host.accelerators = 1;
    const PredictedStep step = predict_step(request);
    const RankPlan planned = plan_of(request, step);
    const double reads = static_cast<double>(planned.tier_updates.all_read()) / read;
    const double writes = static_cast<double>(planned.tier_updates.all_written()) / write;
    CHECK(step.seconds == Approx(std::max(reads, writes)).epsilon(0.05));
    CHECK(waits_for(step, "file") == Approx(std::max(reads, writes)).epsilon(0.05));
    request.system.host.accelerators = 4;  // which share the file
    CHECK(predict_step(request).seconds == Approx(4 * step.seconds).epsilon(0.05));
  }
}

TEST_CASE("an update beside the passes hides its copies as far as the passes last") {
  StepRequest request = in_file(placed_step({"dp4.z2", false, true, true, false}), 1e18, 1e18);
  const double fastest = predict_step(request).seconds;  // copies take no time
  for (const double rate : {4e9, 4e8, 4e7}) {
    request.system.host.file_read = request.system.host.file_write = rate;
    const PredictedStep after = predict_step(request);
    INFO(rate << " B/s, of which a rank has a quarter");
    for (const UpdateTime update : beside_passes) {
      const StepRequest overlaps = updated(request, update);
      const PredictedStep step = predict_step(overlaps);
      const RankPlan planned = plan_of(overlaps, step);
      std::int64_t read = 0, written = 0;
      for (const TierTraffic& t : {planned.tier_passes, planned.tier_updates}) {
        read += t.all_read();
        written += t.all_written();
      }
      INFO(name_of(update));
      CHECK(step.seconds > 0.999 * std::max(fastest, static_cast<double>(std::max(read, written)) / (rate / 4)));
      CHECK(step.seconds < fastest + static_cast<double>(read + written) / (rate / 4));
      if (update != UpdateTime::speculative) CHECK(step.seconds < after.seconds);  // which also writes old states
    }
  }
}

TEST_CASE("delayed, the host's update hides behind the forward pass of the next step") {
  StepRequest request = placed_step({"dp4.z2", false, true, true, false}, 4);  // a single micro-batch
  request.system.host.offload = 1e18;
  StepRequest fast = request;
  fast.system.host.memory = 1e18;
  const PredictedStep fastest = predict_step(fast);
  const PipelineEvent& forward = fastest.step.timeline.events.at(0);
  const double pass = forward.ends - forward.begins;
  for (const double share : {0.5, 0.9, 2.0, 1000.0}) {
    request.system.host.memory = 1e9;  // then the time of the update is known, and the speed for the share follows
    const double update = predict_step(request).seconds - fastest.seconds;
    request.system.host.memory *= update / (share * pass);
    INFO("the update takes " << share << " times as long as the forward pass");
    CHECK(predict_step(request).seconds == Approx(fastest.seconds + share * pass).epsilon(0.02));
    // A delayed update reads and writes 7 % less, because it does not write the values. `after` also waits for copies, which
    // use the host's memory too.
    const double delayed = predict_step(updated(request, UpdateTime::delayed)).seconds;
    CHECK(delayed < 1.03 * (fastest.seconds + std::max(share - 1, 0.0) * pass));
    CHECK(delayed > std::max(fastest.seconds, 0.88 * share * pass));
  }
}

TEST_CASE("updates beside the passes without offload, and folded") {
  for (const UpdateTime update : beside_passes) {
    INFO(name_of(update));
    StepRequest plain = small_step("dp4.z1");
    plain.plan.options.optimizer.clip = 0;
    const double after = predict_step(plain).seconds, beside = predict_step(updated(plain, update)).seconds;
    CHECK(beside < 1.02 * after);  // an update can run while gradients are summed
    CHECK(beside > 0.8 * after);
    StepRequest request = updated(placed_step({"dp4.tp2.pp2.z1", false, false, true, false}, 96), update);
    const double folded = predict_step(request).seconds;
    request.folded = false;
    const PredictedStep each = predict_step(request);
    CHECK(folded == Approx(each.seconds).epsilon(1e-9));  // shards differ by a few elements
  }
}

TEST_CASE("copies are refused without their speeds") {
  StepRequest request = placed_step({"dp4.z1", false, false, true, false});
  CHECK_NOTHROW(require_predictable(request));
  const auto refuses = [](StepRequest r, auto change, const std::string& says) {
    change(r);
    CHECK_THROWS_WITH(require_predictable(r), Catch::Contains(says));
  };
  refuses(
      request, [](StepRequest& r) { r.system.host.offload = 0; }, "[host] has no offload");
  refuses(
      request, [](StepRequest& r) { r.system.host.memory = 0; }, "add memory, in B/s");
  refuses(
      request, [](StepRequest& r) { r.plan.options.offload.to_host = false; }, "add file_read, file_write, in B/s");
}

}  // namespace chorale::test
