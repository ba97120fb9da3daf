// Names the sets in a folder of checkpoints, lists them in loading order, and removes old sets. Each set is the folder of
// one step.
//
//   step-100            complete                       step-100.old    complete, but replaced by a newer set of this step
//   step-150.partial    being written or removed       latest → step-100
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace chorale {

std::string set_name(std::int64_t step);

// `path` is the folder of a run, its folder of checkpoints, or one set. Returns the folder of checkpoints, or the set.
std::filesystem::path folder_of_sets(const std::filesystem::path& path);
[[noreturn]] void refuse_without_checkpoint(const std::filesystem::path& folder);
[[noreturn]] void refuse_damaged(std::size_t sets, const std::string& first_trouble);  // if all sets are damaged

// Returns the sets in the order in which they are tried: `latest`, then earlier steps from new to old, then later steps.
// Sets of later steps exist if a run was continued from an earlier set.
std::vector<std::string> sets_to_load(const std::filesystem::path& folder);

// Returns the step of the set that is tried first; −1 if there is none.
std::int64_t newest_saved_step(const std::filesystem::path& path);

// Removes sets that were only partly written or partly removed.
void remove_partial_sets(const std::filesystem::path& folder);

// Keeps the set of this step and the last set before this step. Also keeps all sets of later steps, because a user might
// still need these sets. Removes all other complete sets, and every .old set.
void remove_old_sets(const std::filesystem::path& folder, std::int64_t newest_step);

}  // namespace chorale
