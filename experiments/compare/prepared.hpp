// A suite's run as a command that can be run: its settings resolved, and refused beforehand if they must be.
#pragma once
#include "experiments/command.hpp"
#include "experiments/compare/suite.hpp"

namespace chorale::compare {

using Prepared = std::unique_ptr<DeclaredCommand>;
std::string command_line(const Options& options);  // with what is not by default

// Its record comes into folder/name; with no name it is only checked, and `folder` is where records would come.
Prepared prepare(const SuiteRun& run, const std::filesystem::path& folder, const std::string& name, const Launch& launch);

// Every run of the suite, before the first is run: a usage error with all that is wrong with any. Gives for each run what it has for the
// settings that the suite varies.
std::vector<std::vector<std::string>> check_runs(const Suite& suite, const std::filesystem::path& parent,
                                                 const Launch& launch);

}  // namespace chorale::compare
