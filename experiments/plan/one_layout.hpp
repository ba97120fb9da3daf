// The plan of one layout: the bytes that a rank of each stage holds and sends, the bubble, and the time of a step.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiments/plan/asked.hpp"
#include "parallel/plan/room.hpp"

namespace chorale::plan {

// A request with a legal layout that suits the machine and the hosts, and in which every `auto` is replaced. `choices` has a
// line with the reason for each replacement.
struct PlacedRequest {
  PlanRequest request;
  std::vector<std::string> choices;
};

// `shortage`: set if the layout does not fit.
std::string print_layout(const AskedPlan& asked, const PlacedRequest& placed, const std::optional<Shortage>& shortage);

}  // namespace chorale::plan
