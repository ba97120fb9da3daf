// Replaces "auto" backends and algorithms in a plan. A run would query its ranks, but a plan has no ranks. The plan
// therefore assumes that all ranks run on machines like this one, or on a named machine. The output states every assumption.
#pragma once
#include <string>
#include <vector>

#include "experiments/plan/hosts.hpp"
#include "parallel/plan/plan.hpp"

namespace chorale::plan {

struct PlanPlace {
  std::string machine = "";  // "": a machine like this one
  bool has_accelerators = false;
  const Hosts* hosts = nullptr;  // the hosts of --hosts, if given
  std::int64_t ranks = 1;
};

// Replaces "auto" in the request, sets its selector, and returns the assumptions. If `place.hosts` is set, Hosts::place()
// replaces "auto" backends instead, because Hosts::place() chooses backends for each layout.
std::vector<std::string> assume(PlanRequest& request, const PlanPlace& place);

}  // namespace chorale::plan
