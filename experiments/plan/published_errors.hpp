// Compares the errors of predictions with the errors of two simple baselines, whose constants are fitted to all rows of a
// table:
//
//   constant     tokens / (GPUs · c): every GPU processes c tokens a second
//   closed form  c1 · flops (1 + bubble) / GPUs + c2 · passes of layers: a flop rate, and a cost per pass of a layer
//
// The third comparison, "two rows fitted", is not a baseline. This comparison multiplies the time of matrix products by one
// constant and all other time by a second constant, so that the predictions of two rows are exact. The chosen rows have the
// largest difference in the fraction of time that matrix products take. The errors of all other rows are shown.
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

Errors errors_of(const std::vector<Compared>& rows);
Errors errors_of_constant(const std::vector<Compared>& rows);
Errors errors_of_closed_form(const std::vector<Compared>& rows);

struct FittedPair {
  std::size_t first, second;  // indices of the rows
  double products, others;    // the constants for matrix products and for all other time
  Errors errors;              // the errors of the other rows
};
std::optional<FittedPair> fitted_to_two(const std::vector<Compared>& rows);  // nullopt: fewer than three rows

}  // namespace chorale::plan
