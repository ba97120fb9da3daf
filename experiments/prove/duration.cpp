#include "experiments/prove/duration.hpp"

#include <algorithm>

namespace chorale::prove {

double expected_seconds(const std::vector<Case>& cases, const References& references, std::int64_t world,
                        std::int64_t cores) {
  double seconds = 0;
  for (const Case& row : cases) {
    const std::int64_t ranks = row.layout.ranks(),
                       busy = std::min(cores, world / ranks * ranks);  // cores in use; several cases run at once
    seconds += reference_of(row, references)->seconds / std::max(1.0, static_cast<double>(busy) / 2);
  }
  return seconds;
}

}  // namespace chorale::prove
