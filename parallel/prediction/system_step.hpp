// Predicts the time of a training step on a system of accelerators, for any number of ranks.
//
//   Training on phantoms ──▶ scripts of stages ──▶ kernel times ──┐
//   layout ──▶ groups, hosts ──▶ classes of ranks ────────────────┼──▶ executor ──▶ seconds and their breakdown
//   machine file ──▶ links ───────────────────────────────────────┘
#pragma once
#include "parallel/prediction/executor.hpp"

namespace chorale {

struct StepRequest {
  PlanRequest plan;  // `hosts` is computed from the system and need not be set
  System system;
  std::string products;  // the number format of products in blocks; if it is empty, the format of the activations
  bool folded = true;    // if false, every rank is recorded and simulated separately
};

struct PredictedStep {
  ExecutedStep step;
  RankClasses ranks;
  double seconds = 0;      // duration of the step, including the effect of slow hosts
  double model_flops = 0;  // sum over all ranks
  double peak_flops = 0;   // sum over all ranks, in the number format of the products
  double mfu() const { return model_flops / (seconds * peak_flops); }
};

PredictedStep predict_step(const StepRequest& request);
// Throws a usage error if the step cannot be predicted. A prediction needs a network if ranks are on several hosts. The
// accelerator must support the number formats. With offload, the machine file must state the speeds of the copies to the
// host's memory or its file. Only fast numerics can be predicted.
void require_predictable(const StepRequest& request);
void require_network(const System& system, std::int64_t ranks);
// The host of each rank of the system, and its leaf switch. If no switch limits the network, there are no switches.
std::vector<int> hosts_of(const System& system, std::int64_t ranks);
std::vector<int> switches_of(const System& system, std::int64_t ranks);

}  // namespace chorale
