// Describes how accurate the predictions of a benchmark were. For each combination of a backend and a number of ranks, one
// paragraph describes the rows with calibrated predictions.
//
//   # predicted / measured, shm on 2 ranks: half of 504 rows within 13 % (|ln| 0.12), 95 of 100 within 54 % (0.43)
//   # the algorithm that was predicted fastest is within 10 % of the fastest at 57 of the 60 sizes that one clearly wins
//
// An algorithm wins clearly if the 95 % interval of its median is below the interval of every other algorithm.
#pragma once
#include <string>

#include "experiments/bench/series_row.hpp"

namespace chorale::bench {

std::string within(double error);  // describes |ln(predicted/measured)|: "within 13 %", "within a factor of 3.1"

std::string prediction_errors(const Rows& rows);  // empty if no row was calibrated

}  // namespace chorale::bench
