// Checkpoints: the state of a run, whole or not there. One folder a step; each rank writes its parts of the global tensors, a manifest says
// where everything lies and what its checksum is. Any layout loads what any layout has saved.
//
//   checkpoints/
//     step-50/            manifest.json   rank-0.safetensors   rank-1.safetensors …
//     step-100/           …
//     step-150.partial/   being written: synced, then renamed, and only then …
//     latest → step-100   … moved by a rename.  Two sets are kept; older ones go when a new one is whole
//
// A death at any moment leaves the old set or the new. Every byte is under a CRC-32C: the data's and the headers' stand in the manifest, and the
// manifest has its own. A set that is damaged is named in a warning and the one before it is taken.
// Cost: each byte written once and read once for its checksum; opening reads every byte of the set once, each rank its share.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <memory>

#include "layers/shape.hpp"
#include "parallel/state/parts.hpp"
#include "src/base/log.hpp"

namespace chorale {

// Whatever else a run needs to go on as if it had never stopped.
struct Metadata {
  std::int64_t step = 0;
  std::int64_t cursor = 0;  // samples taken from the data
  std::uint64_t seed = 0;
  double loss_scale = 0;        // of f16; 0: none
  std::int64_t good_steps = 0;  // since the scale last changed
  std::int64_t patience = 0;    // overflows that it still forgives
  std::int64_t updates = 0;     // of the optimizer: steps that were not skipped
  ModelShape model;
  std::map<std::string, std::int64_t> blocks;  // sizes that exact numerics' bits depend on
  std::string config;                          // as resolved, TOML
};

// What saving and opening need of the ranks: everyone's text, in the order of ranks, given to everyone. One rank alone needs nobody.
struct Peers {
  int rank = 0, size = 1;
  std::function<std::vector<std::string>(std::string mine)> exchange = [](std::string mine) {
    return std::vector{std::move(mine)};
  };
};

// Collective. What several ranks hold alike is given by one of them: together the parts are each tensor, every element once. When it
// returns, the set is on the disk and `latest` is it. When it throws, on every rank, what was there before still is.
void save_checkpoint(const std::filesystem::path& folder, const Metadata& metadata, const std::vector<StateTensor>& mine,
                     const Peers& peers = {});

class Checkpoint {
 public:
  // Collective. `path` is a folder of checkpoints (the newest sound set is taken), one set, or a run that has checkpoints.
  static Checkpoint open(const std::filesystem::path& path, Log& log, const Peers& peers = {});
  ~Checkpoint();
  Checkpoint(Checkpoint&&) noexcept;

  const std::filesystem::path& path() const;
  const Metadata& metadata() const;
  std::vector<StateTensor> tensors() const;  // all that is saved, in order: names, shapes and types; the data are null

  void require_model(const ModelShape& here) const;  // a usage error that says what differs
  void read(
      const std::vector<StateTensor>& wanted) const;  // fills their data; a usage error if a tensor here is of another model

 private:
  struct Set;
  explicit Checkpoint(std::unique_ptr<const Set> set);
  std::unique_ptr<const Set> set_;
};

}  // namespace chorale
