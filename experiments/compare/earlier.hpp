// What an earlier launch of a comparison left in its folder: the runs it finished, those that failed, and whether it can go
// on at all.
//
//   runs/<id>/dp4-r1/run.h5        status ok: finished, and taken as it is; else it is run again
//             pp4-r2/failure.txt   the run failed and ended the launch: a row that says why, until the file is gone
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/compare/summary.hpp"
#include "src/base/launch.hpp"

namespace chorale::compare {

// Throws a usage error unless these ranks can go on with the comparison of this folder now.
void require_can_go_on(const std::filesystem::path& folder, const Launch& launch);

// Of each turn: '.' where the folder holds what came of it, 'x' where it is still to be run.
std::string take_finished(const std::filesystem::path& folder, const std::vector<Turn>& turns, Summary& summary);

void leave_failure(const std::filesystem::path& folder_of_turn, const std::string& what);

std::string status_of(const std::filesystem::path& record);  // "" where it cannot be read: as if it had never been

}  // namespace chorale::compare
