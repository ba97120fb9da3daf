// Compares two records, or two sets of them: every metric that both have, and whether it differs by more than chance. This
// is how a change that made something slower is found.
//
// The samples are launches (experiments/statistics.hpp): each gives one number, the median of its steps or calls. Launches
// of the same name and session alternated (`bench --against`) and are partners. A suite runs in one launch, so a record of a
// suite is one sample, and two of them are too few.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/record_set.hpp"
#include "experiments/report/scale.hpp"
#include "experiments/statistics.hpp"
#include "src/base/text_table.hpp"

namespace chorale::report {

struct Metric {
  // "dp2.tp2: step_time", "all_reduce shm ring f32 64 KiB: latency"; a single run is not named
  std::string name;
  Unit unit;
  bool more_is_better = false;
  bool is_speed = false;  // the other metrics explain the speeds: shown, not checked
  ByBlock launches = {};
};

std::vector<Metric> metrics_of(const RecordSet& records);

struct Difference {
  std::string name;
  Unit unit;
  double one = 0, other = 0;  // medians of the launches
  std::size_t launches_of_one = 0, launches_of_other = 0;
  Contrast contrast;
  double p = 1;     // with Holm's correction for all comparisons; NaN: unknown
  double loss = 0;  // 0.05: the other is 5 % slower (a phase: longer); negative: faster
  bool is_speed = false;
  bool real() const { return p < significant; }
};

struct Comparison {
  std::vector<Difference> differences;
  std::vector<std::string> missing;  // speeds that only `one` has
};

Comparison compare(const std::vector<Metric>& one, const std::vector<Metric>& other);

// The table, and the lines that explain its last columns.
TextTable table_of(const std::vector<Difference>& differences);
std::string legend_of(const std::vector<Difference>& differences);

// Speeds that fell by more than the threshold and by more than chance.
std::vector<Difference> slower(const std::vector<Difference>& differences, double threshold);

}  // namespace chorale::report
