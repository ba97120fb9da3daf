// Computes quantities of a model that introductions to parallel training often quote. The bytes come from three plans: one
// rank with the complete model, and a layout with and without ZeRO.
//
//   states    16 bytes per parameter in f32 with Adam, 2.54 TiB for GPT-3 175B; and the part that each ZeRO replica keeps
//   time      tokens × flops per token / flops per second: 288 years of a V100 at 35 TFLOP/s for 300 billion tokens
//   ZeRO 3    sends 1.5 times the bytes of plain replicas, if weights and gradient sums have the same type
#pragma once
#include <string>

#include "parallel/plan/plan.hpp"

namespace chorale::plan {

struct WholeTraining {
  double tokens = 0;     // 0: not requested
  double sustained = 0;  // flops per second of a rank; 0: unknown
};

std::string words_for_states(const PlanRequest& request);
std::string words_for_time(const WholeTraining& training, const PlanRequest& request);
// Compares the bytes that ZeRO sends with the bytes that replicas send without ZeRO. Returns "" if the bytes are unknown or
// the comparison would be misleading: without ZeRO, with one replica, with repeated shards, with context parallelism, or
// with experts. `planned`: the plan of a rank of stage 0.
std::string words_for_zero_traffic(const PlanRequest& request, const RankPlan& planned);

}  // namespace chorale::plan
