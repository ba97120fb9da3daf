// The plan of one layout: the bytes that a rank of each stage holds and sends, the bubble, and the time of a step.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiments/plan/hosts.hpp"
#include "experiments/plan/snapshot_costs.hpp"
#include "experiments/plan/whole_training.hpp"
#include "parallel/plan/plan.hpp"
#include "parallel/plan/room.hpp"
#include "src/base/machine_file.hpp"

namespace chorale::plan {

struct OneLayout {
  const PlanRequest& request;
  std::optional<System> system;  // the system for which the time of a step is predicted
  const Hosts* hosts = nullptr;  // bytes sent between these hosts are counted separately
  WholeTraining whole;
  SnapshotCosts snapshots;
  std::string timeline;              // file for a picture of the predicted step
  std::vector<std::string> choices;  // one line for each "auto" that was replaced
  std::string assumed;               // the assumptions about backends and algorithms
  double limit = 0;                  // bytes per rank: the memory limit, or the accelerator's memory; 0 if there is neither
  std::optional<Shortage> shortage;  // set if the layout does not fit
};

std::string print_layout(const OneLayout& one, const std::string& format);

}  // namespace chorale::plan
