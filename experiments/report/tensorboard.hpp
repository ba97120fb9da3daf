// Writes event files for TensorBoard from the records of training runs. Each step has its loss, gradient norm, learning
// rate, tokens/s, MFU and time. Each evaluation has its loss.
//
//   DIR/<run id>/events.out.tfevents.<start>.chorale                  a run
//   DIR/<id of the suite>/<run>/events.out.tfevents.<start>.chorale   a run of a suite
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/report/record_set.hpp"

namespace chorale::report {

// Writes a file for each training run, and replaces the file that an earlier call wrote for the same run. Returns the paths
// of the files.
std::vector<std::string> write_tensorboard(const RecordSet& records, const std::filesystem::path& folder);

}  // namespace chorale::report
