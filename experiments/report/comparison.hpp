// Two records, or two sets of them, held against each other: every metric that both have, and whether it differs by more
// than chance. This is what finds that a change made something slower.
//
// It compares launches (experiments/statistics.hpp): each gives one number, the median of its steps or calls. Launches of
// one name and one session alternated (`bench --against`) and are partners. A suite runs in one launch, so two of its
// records are too few.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/record_set.hpp"
#include "experiments/report/scale.hpp"
#include "experiments/statistics.hpp"
#include "src/base/text_table.hpp"

namespace chorale::report {

struct Metric {
  // "dp2.tp2: step_time", "all_reduce shm ring f32 64 KiB: latency"; without the run's name where there is one alone
  std::string name;
  Unit unit;
  bool more_is_better = false;
  bool is_speed = false;  // the others say why: they are shown, not checked
  ByBlock launches = {};
};

std::vector<Metric> metrics_of(const RecordSet& records);

struct Difference {
  std::string name;
  Unit unit;
  double one = 0, other = 0;  // medians of the launches
  std::size_t launches_of_one = 0, launches_of_other = 0;
  Contrast contrast;
  double p = 1;     // corrected by Holm for all that were compared; NaN where it is unknown
  double loss = 0;  // 0.05: the other is 5 % slower (or holds 5 % more); negative: it is faster
  bool is_speed = false;
  bool real() const { return p < significant; }
};

struct Comparison {
  std::vector<Difference> differences;
  std::vector<std::string> missing;  // speeds that only the one has
};

Comparison compare(const std::vector<Metric>& one, const std::vector<Metric>& other);

// The table, and what its last columns mean in lines below it.
TextTable table_of(const std::vector<Difference>& differences);
std::string legend_of(const std::vector<Difference>& differences);

// Speeds that fell by more than the threshold and not by chance.
std::vector<Difference> slower(const std::vector<Difference>& differences, double threshold);

}  // namespace chorale::report
