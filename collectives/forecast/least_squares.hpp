// Finds the parameters that make errors small, by Levenberg and Marquardt's method. It is less sensitive to large errors
// (Huber), and parameters that the errors do not depend on stay near where they begin.
#pragma once
#include <functional>
#include <optional>
#include <vector>

namespace chorale::forecast {

using Row = std::vector<double>;

struct Minimum {
  Row x, errors;  // the parameters, and the errors there
  Row spread;     // by parameter: its standard error
  double cost = 0;
};

// Begins at `start`. `tick`: called often; returns false to stop, and then nothing is returned.
std::optional<Minimum> minimize(const Row& start, const std::function<Row(const Row&)>& errors_at,
                                const std::function<bool()>& tick);

double quantile_of_sizes(const Row& errors, int percent);  // of the absolute values; 0 if there are none

}  // namespace chorale::forecast
