// The goodput of a run with faults: the share of its time in which it makes progress that lasts. After a fault, the run
// continues from its newest snapshot (Young 1974).
//
//   goodput = 1 − δ/τ − (τ/2 + R) / M        best τ = √(2δM)
//
//   δ  time of a snapshot          τ  time between two snapshots: the interval in steps, times the time of a step
//   R  time of a restart           M  mean time between faults
//
// The formula assumes that a fault loses half an interval on average, and that intervals and restarts without a fault are
// much more frequent than those with one. If the formula is negative, faults come too fast for any progress.
#pragma once
#include <cstdint>

namespace chorale {

// All in seconds.
struct FaultTimes {
  double step = 0;
  double snapshot = 0;
  double restart = 0;
  double between_faults = 0;
};

// Where the time goes, as shares of the whole. The shares of a run without progress add up to more than 1.
struct LostShares {
  double snapshots = 0, steps = 0, restarts = 0;
};
LostShares lost_shares(const FaultTimes& times, std::int64_t interval);  // `interval`: steps between snapshots, at least 1
double goodput(const FaultTimes& times, std::int64_t interval);          // 0 if there is no progress
// Returns the interval with the highest goodput, at least 1 and at most 10⁹ steps.
std::int64_t best_interval(const FaultTimes& times);

}  // namespace chorale
