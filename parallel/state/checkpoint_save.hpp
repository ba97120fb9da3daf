// The stages of a save, for save_checkpoint and BackgroundSave. The first stage is PartialSet::make (checkpoint_hosts.hpp).
#pragma once
#include "parallel/state/checkpoint_hosts.hpp"
#include "parallel/state/manifest.hpp"
#include "src/record/safetensors.hpp"

namespace chorale {

// What a rank's file holds: its entries in the manifest, without checksums, and its tensors in the order of `mine`.
struct ShareLayout {
  Manifest share;
  std::vector<safetensors::Entry> entries;
};
ShareLayout layout_of_share(int rank, const std::vector<StateTensor>& mine);

// Writes and syncs this rank's file of the set. Returns the file's entries for the manifest, as a string. Not collective.
std::string write_share(const PartialSet& set, const Peers& peers, const std::vector<StateTensor>& mine);

// Collective. Writes the manifest, gives the set its final name, and removes older sets. Returns the total size of all files
// in bytes.
std::int64_t seal(const PartialSet& set, const Metadata& metadata, const std::vector<std::string>& shares);

}  // namespace chorale
