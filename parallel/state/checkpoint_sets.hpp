// The sets of one folder of checkpoints: their names, which to load first, which to remove.
//
//   step-100          whole         step-100.old        replaced by a set of the same step, whole too
//   step-150.partial  being written, or being removed   latest → step-100
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace chorale {

std::string set_name(std::int64_t step);

// The folder of sets, or the one set, that a path to a run, to its checkpoints or to one of them means.
std::filesystem::path folder_of_sets(const std::filesystem::path& path);
[[noreturn]] void refuse_without_checkpoint(const std::filesystem::path& folder);

// What may be loaded, best first: `latest`, then those before it, newest first, then those of later steps: they belong to a run that was
// taken back to `latest`.
std::vector<std::string> sets_to_load(const std::filesystem::path& folder);

// Removes what is half written or half removed.
void remove_partial_sets(const std::filesystem::path& folder);

// Removes all that is older than the set of this step and the one before it. Sets of later steps stay: nothing says that they are not wanted.
void remove_old_sets(const std::filesystem::path& folder, std::int64_t newest_step);

}  // namespace chorale
