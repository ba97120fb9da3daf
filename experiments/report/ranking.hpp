// Ranks the runs of a page by the metric that their suite names, or by speed. The table of the runs and all charts with one
// bar per run use this order.
//
//   criterion       values of a run                              best
//   tokens/s        the steps after the warm-up                  highest
//   held-out loss   the last evaluation, nats per token          lowest
#pragma once
#include <string>
#include <vector>

#include "experiments/common/scale.hpp"
#include "experiments/report/blocks.hpp"

namespace chorale::report {

struct Criterion {
  const char* name;   // as in a suite
  const char* title;  // the measured quantity, in words
  bool highest_is_best;
  Unit unit;
  int digits;       // significant digits to show
  Samples samples;  // the values of a run: one per step, or only one
};

const std::vector<Criterion>& all_criteria();
const Criterion& criterion_of(const RecordSet& records);

// The runs that have this group, grouped by label, with the best label first. Labels without a value of the metric come
// last, in the order of the files.
std::vector<std::vector<const RecordedRun*>> ranked(const RecordSet& records, const std::string& group);

}  // namespace chorale::report
