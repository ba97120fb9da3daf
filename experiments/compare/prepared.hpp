// Turns a run of a suite into a command that can run. Its settings are resolved, and its mistakes are found beforehand.
#pragma once
#include "experiments/command.hpp"
#include "experiments/compare/suite.hpp"

namespace chorale::compare {

using Prepared = std::unique_ptr<DeclaredCommand>;

// Its record goes to folder/name. Without a name the run is only checked, with `folder` as the place of its records.
Prepared prepare(const SuiteRun& run, const std::filesystem::path& folder, const std::string& name, const Launch& launch);

// Collects the mistakes of all runs before the first one starts.
void check_runs(const Suite& suite, const std::filesystem::path& parent, const Launch& launch,
                std::vector<Mistake>& mistakes);

// The values of each run for the settings that the suite varies.
std::vector<std::vector<std::string>> varied_values(const Suite& suite, const Launch& launch);

}  // namespace chorale::compare
