// Finds the finished and the failed runs in the folder of a comparison that was stopped. Checks whether the comparison can
// continue with the remaining runs.
//
//   runs/<id>/dp4-r1/run.h5        status ok: the result is kept; any other status: --resume starts the run again
//             pp4-r2/failure.txt   the run failed and ended the launch: its row says why, until this file is deleted
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/compare/summary.hpp"
#include "src/base/launch.hpp"

namespace chorale::compare {

// Throws a usage error if this launch cannot continue the comparison in this folder.
void require_can_go_on(const std::filesystem::path& folder, const Launch& launch);

// Enters the earlier results into the summary. Returns a character for each turn (one repetition of one run): '.' if the
// folder has the turn's result or failure, 'x' if the turn must still run.
std::string take_finished(const std::filesystem::path& folder, const std::vector<Repetition>& turns, SuiteSummary& summary);

void leave_failure(const std::filesystem::path& folder_of_turn, const std::string& what);  // writes failure.txt

std::string status_of(const std::filesystem::path& record);  // "" if the record is unreadable or missing

}  // namespace chorale::compare
