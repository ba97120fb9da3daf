#include "parallel/plan/goodput.hpp"

#include <algorithm>
#include <cmath>

namespace chorale {
namespace {

double lost(const FaultTimes& times, std::int64_t interval) {
  const LostShares shares = lost_shares(times, interval);
  return shares.snapshots + shares.steps + shares.restarts;
}

}  // namespace

LostShares lost_shares(const FaultTimes& times, std::int64_t interval) {
  const double between_snapshots = static_cast<double>(interval) * times.step;
  return {.snapshots = times.snapshot / between_snapshots,
          .steps = between_snapshots / 2 / times.between_faults,
          .restarts = times.restart / times.between_faults};
}

double goodput(const FaultTimes& times, std::int64_t interval) { return std::max(0.0, 1 - lost(times, interval)); }

// The loss falls until the best time and rises after it, so the best whole number of steps is next to the best time.
std::int64_t best_interval(const FaultTimes& times) {
  constexpr double most = 1e9;
  const double best = std::sqrt(2 * times.snapshot * times.between_faults) / times.step;
  const auto below = static_cast<std::int64_t>(std::clamp(std::floor(best), 1.0, most));
  const std::int64_t above = std::min(below + 1, static_cast<std::int64_t>(most));
  return lost(times, above) < lost(times, below) ? above : below;
}

}  // namespace chorale
