// The results of a benchmark. Converts a measured series to a row (series_row.hpp). Writes the record, with every sample of
// every rank.
//
//   /series   row*      the measured call, and a summary of its times
//   /samples  sample*   series, repetition, rank, time
#pragma once
#include "collectives/choice/selection.hpp"
#include "experiments/bench/measure.hpp"
#include "experiments/bench/series_row.hpp"
#include "src/record/recorder.hpp"

namespace chorale::bench {

struct Conditions {  // the same for all rows of a run
  Cache cache = Cache::hot;
  Where memory = Where::symmetric;
  bool crowded = false;  // more processes than cores on some host
  bool strided = false;  // Groups::strided
};

// The row of a series. `selector` makes the predictions.
SeriesRow row_of(const Series& series, const Conditions& conditions, const Selector& selector);

void write(Recorder& recorder, const Rows& rows, const std::vector<Series>& series);  // one row per series

}  // namespace chorale::bench
