// The figures that introductions quote about a model. The bytes come from plans: of one rank that has the whole model, and
// of a layout with ZeRO and without.
//
//   states    16 bytes a parameter in f32 with Adam, 2.54 TiB for GPT-3 175B, and what each of many ZeRO replicas keeps
//   time      tokens × flops of a token / flops per second: 288 years of a V100 at 35 TFLOP/s for 300 billion tokens
//   ZeRO 3    sends 1.5 times the bytes of plain replicas, if weights and gradient sums have the same type
#pragma once
#include <string>

#include "parallel/plan/plan.hpp"

namespace chorale::plan {

struct WholeTraining {
  double tokens = 0;     // 0: not asked
  double sustained = 0;  // flops per second of a rank; 0: unknown
};

std::string words_for_states(const PlanRequest& request);
std::string words_for_time(const WholeTraining& training, const PlanRequest& request);
// "" without ZeRO, with repeated shards, if the bytes are unknown, and if the replicas' axis also carries tokens.
// `planned`: of a rank of stage 0.
std::string words_for_zero_traffic(const PlanRequest& request, const RankPlan& planned);

}  // namespace chorale::plan
