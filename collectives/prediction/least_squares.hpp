// Finds the parameters that minimize the errors, by the Levenberg-Marquardt method. A Huber loss limits the influence of
// large errors. Parameters that do not affect the errors stay near their start values.
#pragma once
#include <functional>
#include <optional>
#include <vector>

namespace chorale::prediction {

using Row = std::vector<double>;

struct Minimum {
  Row x, errors;  // the parameters and the errors at the minimum
  Row spread;     // the standard error of each parameter
  double cost = 0;
};

// The search begins at `start`. `tick` is called often. If `tick` returns false, the search stops and returns nothing.
std::optional<Minimum> minimize(const Row& start, const std::function<Row(const Row&)>& errors_at,
                                const std::function<bool()>& tick);

double quantile_of_sizes(const Row& errors, int percent);  // the quantile of |errors|; 0 if `errors` is empty

}  // namespace chorale::prediction
