// Converts a run of a suite into a command with all its settings, and checks the command before any run starts.
#pragma once
#include "experiments/common/command.hpp"
#include "experiments/compare/suite.hpp"

namespace chorale::compare {

using Prepared = std::unique_ptr<DeclaredCommand>;

// The command will record its run in folder/name. If `name` is "", the command is only checked, as if it recorded in
// `folder`.
Prepared prepare(const SuiteRun& run, const std::filesystem::path& folder, const std::string& name, const Launch& launch);

// Returns the command with the run's settings, without checking them.
Prepared prepared_options(const SuiteRun& run);

// Collects the mistakes of all runs before the first run starts. Each setting is checked alone, then all settings of a run
// together. If a setting is wrong, its run skips the second check. Returns the number of runs that skip the second check.
std::size_t check_runs(const Suite& suite, const std::filesystem::path& parent, const Launch& launch,
                       std::vector<Mistake>& mistakes);

// Element [r][v]: the value that run r has for the v-th varied setting of the suite.
std::vector<std::vector<std::string>> varied_values(const Suite& suite, const Launch& launch);

}  // namespace chorale::compare
