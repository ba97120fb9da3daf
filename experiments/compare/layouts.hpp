// Generates a suite from options, so that users need not write a file. `compare --preset nano --layouts dp4,tp4
// --train-iters 12` generates the suite below. The comparison keeps this suite as suite.toml. --resume reads this file, and
// users can copy it to start their own suites.
//
//   question = "Which of 2 layouts trains nano fastest?"
//   repetitions = 6
//
//   [[runs]]                        one per layout, because each can have its own number of ranks
//   preset = "nano"
//   train-iters = "12"
//   no-save = "true"                unless --no-save or --save-interval is given
//   ranks = 4
//   vary.layout = ["dp4"]
#pragma once
#include "experiments/compare/suite.hpp"
#include "src/base/launch.hpp"

namespace chorale::compare {

// Returns the content of the suite file. `words`: the layouts, or "all". `given`: the options of train, which all runs
// share. `parent`: the folder below which the runs will be recorded. `fill_memory`: see suite.hpp. Throws the first mistake
// in the options as a usage error.
std::string suite_of_layouts(const std::vector<std::string>& words, const std::vector<Setting>& given,
                             const std::filesystem::path& parent, std::int64_t fill_memory, const Launch& launch);

}  // namespace chorale::compare
