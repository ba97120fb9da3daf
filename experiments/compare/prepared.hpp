// A suite's run as a command that can be run: its settings resolved, and refused beforehand if they must be.
#pragma once
#include "experiments/command.hpp"
#include "experiments/compare/suite.hpp"

namespace chorale::compare {

using Prepared = std::unique_ptr<DeclaredCommand>;

// Its record comes into folder/name; with no name it is only checked, and `folder` is where records would come.
Prepared prepare(const SuiteRun& run, const std::filesystem::path& folder, const std::string& name, const Launch& launch);

// What is wrong with any run of the suite, before the first is run.
void check_runs(const Suite& suite, const std::filesystem::path& parent, const Launch& launch,
                std::vector<Mistake>& mistakes);

// What each run has for the settings that the suite varies.
std::vector<std::vector<std::string>> varied_values(const Suite& suite, const Launch& launch);

}  // namespace chorale::compare
