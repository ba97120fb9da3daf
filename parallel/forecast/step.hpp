// Predicts the time of a training step by the prices of the machine file: the code of Training runs on phantom
// tensors, once per stage and context rank, and leaves a script (script.hpp). The scripts of all ranks are simulated
// (simulation.hpp).
//
//   Training on phantoms ──▶ scripts ──┐
//   [[compute]]  speed of a core ──────┼──▶ simulate ──▶ seconds
//   [[level]]    time of each call ────┘
//
// Not predicted: other numerics than fast, GPUs, more ranks than forecast::most_ranks. Reading data takes no time, and all
// ranks of a stage with the same tokens of a sequence take the same time.
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

// How fast a core does each kind of work, by the rates of the run that had the most similar number of ranks; nullopt if the
// machine file has none of this type.
std::optional<Speeds> speeds_of(const Machine& machine, DType compute, int ranks);

}  // namespace chorale
