// Checkpoints: the state of a run. A set is one folder per step, and exists whole or not at all. Each rank writes its parts
// of the global tensors; a manifest lists every part and its checksum. Any layout loads what any layout saved.
//
//   checkpoints/
//     step-50/            manifest.json   rank-0.safetensors   rank-1.safetensors …
//     step-100/           …
//     step-150.partial/   being written: synced, then renamed to step-150; then `latest` is replaced by a rename
//     latest → step-100   two sets are kept; older ones are removed once a new one is whole
//
// A crash at any moment leaves the old set or the new one. Every byte has a CRC-32C. The manifest holds those of the data
// and the file headers, and has its own. If a set is damaged, a warning names it, and the previous set is loaded.
// Cost: saving writes each byte once and reads it once for its checksum. Opening reads every byte of the set once; each
// rank reads a share.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <memory>

#include "layers/shape.hpp"
#include "parallel/state/parts.hpp"
#include "src/base/log.hpp"

namespace chorale {

// Besides the tensors, the values that a run needs to continue as if it had never stopped.
struct Metadata {
  std::int64_t step = 0;
  std::int64_t cursor = 0;  // samples consumed from the data
  std::uint64_t seed = 0;
  double loss_scale = 0;        // for f16; 0: none
  std::int64_t good_steps = 0;  // since the scale last changed
  std::int64_t patience = 0;    // further overflows tolerated before the scale shrinks
  std::int64_t updates = 0;     // optimizer steps, without skipped ones
  ModelShape model;
  std::map<std::string, std::int64_t> blocks;  // sizes that exact numerics' bits depend on
  std::string config;                          // as resolved, TOML
};

// Saving and opening need one collective: `exchange` gives every rank the texts of all ranks, in rank order. The default is
// a single rank.
struct Peers {
  int rank = 0, size = 1;
  std::function<std::vector<std::string>(std::string mine)> exchange = [](std::string mine) {
    return std::vector{std::move(mine)};
  };
};

// Collective. The parts of all ranks must cover every element of each tensor exactly once, so only one of several copies is
// passed. On return, the set is on disk and `latest` points to it. On failure it throws on every rank, and earlier sets are
// intact.
void save_checkpoint(const std::filesystem::path& folder, const Metadata& metadata, const std::vector<StateTensor>& mine,
                     const Peers& peers = {});

class Checkpoint {
 public:
  // Collective. `path` is a folder of checkpoints, one set, or a run folder that has checkpoints. A folder gives its newest
  // undamaged set.
  static Checkpoint open(const std::filesystem::path& path, Log& log, const Peers& peers = {});
  ~Checkpoint();
  Checkpoint(Checkpoint&&) noexcept;

  const std::filesystem::path& path() const;
  const Metadata& metadata() const;
  std::vector<StateTensor> tensors() const;  // all saved tensors: names, shapes and types; their data are null

  void require_model(const ModelShape& here) const;  // throws a usage error that names the first difference
  // Fills the data of these tensors. A usage error if a tensor belongs to another model.
  void read(const std::vector<StateTensor>& wanted) const;

 private:
  struct Set;
  explicit Checkpoint(std::unique_ptr<const Set> set);
  std::unique_ptr<const Set> set_;
};

}  // namespace chorale
