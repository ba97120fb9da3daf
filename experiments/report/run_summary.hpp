// The text of `chorale report` for the record of one run: one screen, at most 40 lines of 80 columns.
//
//   runs/latest/run.h5              how the run ended, and its facts (heading.hpp)
//     loss, speed, a step …         the results, one per line
//                predicted measured time, memory and bytes, as planned and as measured
//     time  step  event …             what happened to the starts of a launch (launch_summary.hpp), instead of predictions
//     step  loss …                  some steps from the first to the last, as many as fit
//   all tables: …                   the commands that show more
//
// The record of a command that does not train has its own table instead: the cases of `prove`, the sizes of `bench`.
#pragma once
#include <string>

#include "experiments/report/record_set.hpp"

namespace chorale::report {

std::string run_summary(const std::string& file, std::int64_t warm_up, std::size_t columns);

}  // namespace chorale::report
