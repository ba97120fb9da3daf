// The goodput of a run with faults: the share of its time in which it makes progress that lasts. After a fault, the run
// continues from its newest snapshot (Young 1974). Faults come at random, at a constant rate (Daly 2006):
//
//   E = M e^(R/M) (e^((τ+δ)/M) − 1)      time in which τ seconds of steps last        goodput = τ/E
//
//   δ  time of a snapshot          τ  time between two snapshots: the interval in steps, times the time of a step
//   R  time of a restart           M  mean time between faults
//
// If faults are rare, goodput ≈ 1 − δ/τ − (τ/2 + R)/M, and the best τ ≈ √(2δM).
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

// Where the rest of the time goes, as shares of the whole.
struct LostShares {
  double snapshots = 0, steps = 0, restarts = 0;
};
LostShares lost_shares(const FaultTimes& times, std::int64_t interval);  // `interval`: steps between snapshots, at least 1
double goodput(const FaultTimes& times, std::int64_t interval);
// Returns the interval with the highest goodput, at least 1 and at most 10⁹ steps.
std::int64_t best_interval(const FaultTimes& times);

}  // namespace chorale
