// Curves of training: a column of /train or /eval by step, tokens or time, one per label. Curves that are equal bit for bit
// are one line, whose name says "identical".
//
//   repetitions   the curve is their median at each step, with their range; two curves are identical only if all of their
//                 repetitions are
#pragma once
#include <string>
#include <vector>

#include "experiments/report/chart.hpp"
#include "experiments/report/record_set.hpp"

namespace chorale::report {

struct Curve {
  std::vector<const RecordedRun*> runs;  // repetitions
  std::vector<Point> points;
  const RecordedRun& run() const { return *runs.front(); }
  bool operator==(const Curve& other) const;  // identical
};

enum class Along { steps, tokens, seconds };
ChartAxis axis_of(Along along);

// A step without a finite value stays in the curve as a gap.
Curve curve_of(const std::vector<const RecordedRun*>& runs, const std::string& column, Along along = Along::steps,
               const std::string& group = "train");
// One curve per label with training steps. Simulated runs are left out, because their steps all take the same time. So are
// empty curves.
std::vector<Curve> curves_of(const RecordSet& records, const std::string& column, Along along = Along::steps);

// One line per group of identical curves. The first few have looks of their own; the others are gray.
std::vector<Line> lines_of(const std::vector<Curve>& curves);

}  // namespace chorale::report
