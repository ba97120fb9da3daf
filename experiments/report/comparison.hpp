// Compares two records, or two sets of records. Lists every metric that both have, and whether its difference is
// significant. Such a comparison shows whether a change of the code made the program slower.
//
// A launch (one start of the program) gives one sample, which is the median of its steps or calls
// (experiments/common/statistics.hpp gives the reason). `bench --against` alternates the launches of two programs in one
// session; launches with the same number are then compared in pairs. A suite runs in one launch, so the record of a suite is
// only one sample, which is too few for a comparison.
#pragma once
#include <string>
#include <vector>

#include "experiments/common/scale.hpp"
#include "experiments/common/statistics.hpp"
#include "experiments/report/record_set.hpp"
#include "src/base/text_table.hpp"

namespace chorale::report {

struct Metric {
  // "dp2.tp2: step_time", "all_reduce shm ring f32 64 KiB, 4 ranks: latency". If all training runs of the records have the
  // same label, the label is omitted: "step_time".
  std::string name;
  Unit unit;
  bool more_is_better = false;
  bool is_speed = false;  // false for a phase of a step: the table shows it to explain the speed, but --check ignores it
  ByBlock launches = {};  // one value per launch; the key is the launch's name
  bool is_bench = false;  // whether the value is from a benchmark, which can have many launches in one record
};

std::vector<Metric> metrics_of(const RecordSet& records);

struct MetricDifference {
  std::string name;
  Unit unit;
  double one = 0, other = 0;  // medians of the launches
  std::size_t launches_of_one = 0, launches_of_other = 0;
  Contrast contrast;
  double p = 1;      // p-value with Holm's correction for all comparisons; NaN: unknown
  double loss = 0;   // 0.05 if `other` is 5 % slower (or a phase takes 5 % longer); negative if it is faster
  double worst = 0;  // the largest loss in the 95 % interval; NaN with too few launches for an interval
  double fall = 0;   // the largest relative decrease of the speed within the interval; 0.5 means possibly halved
  bool is_speed = false, is_bench = false;
  bool real() const { return p < significant; }
};

struct Comparison {
  std::vector<MetricDifference> differences;
  std::vector<std::string> missing;  // names of the speeds that only `one` has
};

Comparison compare(const std::vector<Metric>& one, const std::vector<Metric>& other);

// The table of the differences, and the lines below it that explain the columns. A and B are medians of the launches, but B
// / A, its interval and p are computed from geometric means. If some launches are stalled, B / A can differ widely from the
// ratio of the medians. In csv and json, every quantity is a plain value, and an additional column states the unit of A and
// B.
TextTable table_of(const std::vector<MetricDifference>& differences, const std::string& format);
std::string legend_of(const std::vector<MetricDifference>& differences);

// Returns the speeds with a significant decrease that exceeds the threshold.
std::vector<MetricDifference> slower(const std::vector<MetricDifference>& differences, double threshold);
// Returns the remaining speeds whose intervals extend beyond the threshold. It is possible that these speeds decreased by
// more than the threshold.
std::vector<MetricDifference> perhaps_slower(const std::vector<MetricDifference>& differences, double threshold);

}  // namespace chorale::report
