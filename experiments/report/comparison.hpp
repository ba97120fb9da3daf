// Two records, or two sets of them, held against each other: every metric that both have, with its median and interval on each side, and
// whether they differ by more than chance. This is what finds that a change made something slower.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/record_set.hpp"
#include "experiments/report/scale.hpp"
#include "experiments/statistics.hpp"
#include "src/base/text_table.hpp"

namespace chorale::report {

// A series of samples: of the steps behind the warm-up, or of the calls of a benchmark. What repetitions measured is put together.
struct Metric {
  std::string
      name;  // "dp2.tp2: step_time", "all_reduce shm ring f32 64 KiB: latency"; without the run's name where there is one alone
  Unit unit;
  bool more_is_better = false;
  bool is_speed = false;  // the others say why: they are shown, not checked
  std::vector<double> samples;
};

std::vector<Metric> metrics_of(const RecordSet& records);

struct Difference {
  std::string name;
  Unit unit;
  Summary one, other;
  double ratio = 1;  // of the medians, other over one
  double p = 1;
  double loss = 0;  // by how much the other is slower, as a part of the one; negative where it is faster
  bool is_speed = false;
  bool real() const { return p < significant; }
};

struct Comparison {
  std::vector<Difference> differences;
  std::vector<std::string> missing;  // speeds that the one has and the other has not
};

Comparison compare(const RecordSet& one, const RecordSet& other);

TextTable table_of(const std::vector<Difference>& differences);

// Speeds that fell by more than the threshold and not by chance. Of many comparisons some are significant by chance: each has to
// be so much less probable as there are comparisons (Bonferroni).
std::vector<Difference> slower(const std::vector<Difference>& differences, double threshold);

}  // namespace chorale::report
