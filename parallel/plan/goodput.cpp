#include "parallel/plan/goodput.hpp"

#include <algorithm>
#include <cmath>

namespace chorale {

// expm1 keeps the digits of rare faults. If E exceeds all numbers, nothing lasts.
double goodput(const FaultTimes& times, std::int64_t interval) {
  const double steps = static_cast<double>(interval) * times.step, faults = times.between_faults;
  return steps / (faults * std::exp(times.restart / faults) * std::expm1((steps + times.snapshot) / faults));
}

LostShares lost_shares(const FaultTimes& times, std::int64_t interval) {
  const double lasting = goodput(times, interval);
  LostShares lost{.snapshots = lasting * times.snapshot / (static_cast<double>(interval) * times.step),
                  .restarts = -std::expm1(-times.restart / times.between_faults)};
  lost.steps = std::max(0.0, 1 - lasting - lost.snapshots - lost.restarts);
  return lost;
}

// The goodput rises until the best time and falls after it. The best time of rare faults is an upper bound.
std::int64_t best_interval(const FaultTimes& times) {
  constexpr double most = 1e9;
  const double bound = std::sqrt(2 * times.snapshot * times.between_faults) / times.step;
  std::int64_t low = 1, high = static_cast<std::int64_t>(std::clamp(std::ceil(bound), 1.0, most));
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (goodput(times, middle + 1) > goodput(times, middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace chorale
