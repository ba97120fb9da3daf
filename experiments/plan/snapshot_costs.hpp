// Shows what snapshots of `chorale launch` cost a layout: their bytes and, if the time of a step is predicted, the goodput
// of a run with faults.
//
//   --snapshot-interval N    steps between snapshots
//   --mtbf TIME              mean time between faults of the whole run
//   --restart-time TIME      from a fault to the next step
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "experiments/plan/document.hpp"
#include "parallel/plan/snapshots.hpp"
#include "src/base/options.hpp"
#include "src/base/system.hpp"

namespace chorale::plan {

struct SnapshotCosts {
  // `why_not`: returns why the plan shows no costs of snapshots, or "".
  void declare(Options& options, const std::function<std::string()>& why_not);
  void check() const;  // throws a usage error if there is no time between faults

  std::int64_t interval = 1;
  double between_faults = 3600, restart = 3;
};

// `step_seconds`: predicted time of a step, or −1. Adds nothing if the interval is 0.
void add_snapshot_costs(Document& document, const SnapshotCosts& costs, const PlanRequest& request,
                        const std::optional<System>& system, double step_seconds);

// The predicted time in which a rank copies a snapshot of this size, while all other ranks copy as much. Returns nullopt if
// the machine file has no rate.
std::optional<double> seconds_of_snapshot(std::int64_t bytes, const PlanRequest& request,
                                          const std::optional<System>& system);

}  // namespace chorale::plan
