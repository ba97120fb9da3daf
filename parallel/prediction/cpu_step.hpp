// Predicts the time of a training step on this machine from the measurements in the machine file. The code of Training runs
// on phantom tensors (tensors without memory), once per stage and context rank. This run records a script (script.hpp). The
// scripts of all ranks are then simulated (cpu_step_run.hpp).
//
//   Training on phantoms ──▶ scripts ──┐
//   [[compute]]  speed of a core ──────┼──▶ simulate ──▶ seconds
//   [[level]]    time of each call ────┘
//
// Only steps on CPUs with fast numerics and at most prediction::most_ranks ranks can be predicted. The prediction assumes
// that reading data takes no time, and that all ranks with equal stage and context rank take the same time.
#pragma once
#include "parallel/plan/plan.hpp"
#include "parallel/prediction/cpu_step_run.hpp"

namespace chorale {

struct PredictedCpuStep {
  StepTime time;
  std::string why_not;      // why there is no prediction; "" if there is one
  std::string origin = "";  // where the prediction comes from (origin_of)
  explicit operator bool() const { return why_not.empty(); }
};

PredictedCpuStep predict_cpu_step(const PlanRequest& request);

// Returns the measurement of compute rates for this type whose number of ranks is closest to `ranks`. Returns null if the
// machine file has none.
const ComputeRates* rates_of(const Machine& machine, DType compute, int ranks);

}  // namespace chorale
