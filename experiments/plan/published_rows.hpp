// Predicts the rows of a published table. A setting that the table does not have is an assumption of the series. If the
// micro-batch or the interleaving is not published, the fastest choice that fits the accelerator's memory is taken.
#pragma once
#include <map>
#include <string>

#include "experiments/plan/published_series.hpp"
#include "parallel/prediction/system_step.hpp"

namespace chorale::plan {

using Row = std::map<std::string, double>;

struct PredictedRow {
  double seconds = 0;          // duration of the step
  double seconds_if_slow = 0;  // predicted time if matrix products took 0.1 % longer
  std::int64_t micro_batch = 1;
  std::string layout;
  double tokens_per_gpu = 0, flops_per_gpu = 0, layer_passes = 0, bubble = 0;  // inputs of the simple baselines
  double published_flops = 0;  // flops of a step by PTD-P's formula: for tables in TFLOP/s
};

PredictedRow predict_row(const PublishedSeries& series, const System& machine, const Row& row);
// The measured time of a row in seconds; NaN if the table has none.
double measured_seconds(const PublishedSeries& series, const Row& row, const PredictedRow& predicted);

}  // namespace chorale::plan
