// Training curves. A curve shows a column of /train or /eval by step, tokens or time; each label has one curve.
// Bit-identical curves are drawn as one line, and its name says "identical".
//
//   repetitions   the curve is their median at each step, with their range; two curves are identical only if all their
//                 repetitions are identical
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
  bool operator==(const Curve& other) const;  // bit-identical
};

enum class Along { steps, tokens, seconds };
ChartAxis axis_of(Along along);

// A step without a finite value stays in the curve as a gap.
Curve curve_of(const std::vector<const RecordedRun*>& runs, const std::string& column, Along along = Along::steps,
               const std::string& group = "train");
// Returns one curve per label with training steps. Simulated runs are left out, because all their steps take the same time.
// Empty curves are left out, too.
std::vector<Curve> curves_of(const RecordSet& records, const std::string& column, Along along = Along::steps);

// Returns one line per group of identical curves. The first few lines have their own looks; the others are gray.
std::vector<Line> lines_of(const std::vector<Curve>& curves);

// Returns marks for the interruptions of the runs of the curves (launch_events.hpp).
Line interruptions_of(const std::vector<Curve>& curves, Along along);

}  // namespace chorale::report
