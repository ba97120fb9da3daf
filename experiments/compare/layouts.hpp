// A suite without a file. `compare --preset nano --layouts dp4,tp4 --train-iters 12` generates the suite below. It is kept
// with the comparison as suite.toml, which --resume reads, and which can be copied to start a suite of your own.
//
//   question = "Which of 2 layouts trains nano fastest?"
//   repetitions = 6
//
//   [[runs]]                        one per layout, because each may have its own number of ranks
//   preset = "nano"
//   train-iters = "12"
//   no-save = "true"                unless --no-save or --save-interval is given
//   ranks = 4
//   vary.layout = ["dp4"]
#pragma once
#include "experiments/compare/suite.hpp"
#include "src/base/launch.hpp"

namespace chorale::compare {

// `given`: the options of train that all runs have. `parent`: the folder in which records would be created. The first
// mistake is a usage error of three lines.
std::string suite_of_layouts(const std::vector<std::string>& words, const std::vector<Setting>& given,
                             const std::filesystem::path& parent, const Launch& launch);

}  // namespace chorale::compare
