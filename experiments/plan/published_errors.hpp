// How far predictions are from a table's measurements, beside two simple baselines, which fit their constants to all rows:
//
//   constant     tokens / (GPUs · c): every GPU processes c tokens a second
//   closed form  c1 · flops (1 + bubble) / GPUs + c2 · passes of layers: a rate of flops, and a cost of every layer's pass
//
// The third comparison, "two rows fitted", is of a different kind. It multiplies the seconds of products by one constant and
// all other seconds by a second one, so that two rows agree. Its errors are those of the other rows. The two rows are those
// whose shares of products differ most.
#pragma once
#include <optional>
#include <vector>

#include "experiments/plan/published_rows.hpp"

namespace chorale::plan {

struct Compared {
  PredictedRow predicted;
  double measured = 0;  // seconds
};

struct Errors {
  double mean = 0, median = 0, greatest = 0;  // mean, median and maximum of |predicted / measured - 1|
};

Errors errors_of(const std::vector<double>& predicted, const std::vector<Compared>& rows);
Errors errors_of(const std::vector<Compared>& rows);
Errors errors_of_constant(const std::vector<Compared>& rows);
Errors errors_of_closed_form(const std::vector<Compared>& rows);

struct FittedPair {
  std::size_t first, second;  // rows
  double products, others;    // the constants
  Errors errors;              // the errors of the other rows
};
std::optional<FittedPair> fitted_to_two(const std::vector<Compared>& rows);  // nullopt: fewer than three rows

}  // namespace chorale::plan
