// Predicts the time of a training step from the measurements in the machine file. The code of Training runs on phantom
// tensors (tensors without memory), once per stage and context rank. This run records a script (script.hpp). The scripts of
// all ranks are then simulated (simulation.hpp).
//
//   Training on phantoms ──▶ scripts ──┐
//   [[compute]]  speed of a core ──────┼──▶ simulate ──▶ seconds
//   [[level]]    time of each call ────┘
//
// Only steps on CPUs with fast numerics and at most forecast::most_ranks ranks can be predicted. The prediction assumes that
// reading data takes no time, and that all ranks with equal stage and context rank take the same time.
#pragma once
#include "parallel/forecast/simulation.hpp"
#include "parallel/plan/plan.hpp"

namespace chorale {

struct StepForecast {
  StepTime time;
  std::string why_not;  // why there is no prediction; "" if there is one
  explicit operator bool() const { return why_not.empty(); }
};

StepForecast forecast_step(const PlanRequest& request);

// Returns the speed of one core for each kind of work. The speed comes from the measurement whose number of ranks is closest
// to `ranks`. Returns nullopt if the machine file has no rates for this type.
std::optional<Speeds> speeds_of(const Machine& machine, DType compute, int ranks);

}  // namespace chorale
