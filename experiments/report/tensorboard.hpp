// Event files for TensorBoard, from the records of training runs: loss, gradient norm, learning rate, tokens/s, MFU and the
// time of each step, and the loss of evaluations.
//
//   DIR/<run id>/events.out.tfevents.<start>.chorale                  a run
//   DIR/<id of the suite>/<run>/events.out.tfevents.<start>.chorale   a run of a suite
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/report/record_set.hpp"

namespace chorale::report {

// Writes a file for each run that trained; replaces one that an earlier call wrote for the same run. Returns the files.
std::vector<std::string> write_tensorboard(const RecordSet& records, const std::filesystem::path& folder);

}  // namespace chorale::report
