// A suite without a file: `compare --preset nano --layouts dp4,tp4 --train-iters 12` is the suite that one would have
// written. It is kept with the comparison as suite.toml, so --resume reads it, and it is a start for one's own.
//
//   question = "Which of 2 layouts trains nano fastest?"
//   repetitions = 6
//
//   [[runs]]                        one for each layout, as each may have a number of ranks of its own
//   preset = "nano"
//   train-iters = "12"
//   no-save = "true"                unless something is said of saving
//   ranks = 4
//   vary.layout = ["dp4"]
#pragma once
#include "experiments/compare/suite.hpp"
#include "src/base/launch.hpp"

namespace chorale::compare {

// `given`: the options of train that all runs have. The first mistake is a usage error of three lines; `parent` is where
// records would come.
std::string suite_of_layouts(const std::vector<std::string>& words, const std::vector<Setting>& given,
                             const std::filesystem::path& parent, const Launch& launch);

}  // namespace chorale::compare
