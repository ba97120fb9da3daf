// The parts of run_summary.hpp that only the record of a launch has.
//
//     layout      dp2.tp2.z1 on 4 ranks, dp3.z1 after step 16
//     restarts    1 (1 died); 2 steps were done again; 1.9 s of 17.6 s passed without a new step
//
//   time   step  event         layout               lost steps  recovery     one line per event
//   6.1 s    16  died: rank 3  dp2.tp2.z1 → dp3.z1           2  1.85 s
//   each start: chorale report runs/latest/*-train-*                         the records of the starts
#pragma once
#include <string>

#include "experiments/report/record_set.hpp"

namespace chorale::report {

// "dp2.tp2.z1 on 4 ranks, dp3.z1 after step 16". Of many layouts, only the first and the last are named.
std::string layouts_in_words(const RecordedRun& run);
std::string restarts_of(const RecordedRun& run, std::size_t columns);  // a fact; "" without an interruption
// The newest events, on at most `most` lines. Returns "" if nothing interrupted the run.
std::string newest_events(const RecordedRun& run, std::size_t most, std::size_t columns);
std::string reports_of_starts(const std::string& file, std::size_t columns);  // a command; "" if the folder has no starts

}  // namespace chorale::report
