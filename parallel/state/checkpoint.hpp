// A checkpoint is the saved state of a run. All files of one step are in one folder, which is called a set. An incomplete
// set is ignored. Each rank writes its parts of the tensors to one file. A manifest lists every part and its checksum. A
// checkpoint that was saved on one layout can be loaded on any other layout.
//
//   checkpoints/
//     step-50/            manifest.json   rank-0.safetensors   rank-1.safetensors …
//     step-100/           …
//     step-150.partial/   being written: synced, then renamed to step-150; then `latest` is replaced by a rename
//     latest → step-100   two sets are kept; older sets are removed once a new set is complete
//
// After a crash at any moment, a complete set can be loaded: either the old set or the new set. Every byte is protected by a
// CRC-32C. The manifest holds the checksums of the data, of the file headers and of itself. If a set is damaged, a warning
// names it, and the previous set is loaded.
//
// Saving writes each byte once, and reads it once from memory to compute its checksum. Opening a checkpoint reads every byte
// of the set once from disk. The ranks divide this work.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <memory>

#include <chorale/model.hpp>
#include "parallel/mesh/byte_message.hpp"
#include "parallel/state/parts.hpp"
#include "src/base/log.hpp"

namespace chorale {

// The values that a run needs, in addition to its tensors, to continue as if it had never stopped.
struct Metadata {
  std::int64_t step = 0;
  std::int64_t cursor = 0;  // number of samples that the run has read from its data
  std::uint64_t seed = 0;
  double loss_scale = 0;        // for f16; 0 if the run does not scale its loss
  std::int64_t good_steps = 0;  // steps without overflow since the last overflow or change of the scale
  std::int64_t patience = 0;    // number of further overflows that are tolerated before the scale is lowered
  std::int64_t updates = 0;     // number of optimizer steps, not counting skipped steps
  ModelShape model;
  std::map<std::string, std::int64_t> blocks;  // sizes that determine the rounding of exact numerics; empty for fast
                                               // numerics
  std::string config;                          // every option with its value, as TOML
};

// The ranks that save or open a checkpoint together. The only collective that files need is `exchange`, which gives every
// rank the strings of all ranks, in rank order. The default is a single rank.
struct Peers {
  int rank = 0, size = 1;
  std::function<std::vector<std::string>(std::string mine)> exchange = [](std::string mine) {
    return std::vector{std::move(mine)};
  };
  std::function<void()> went_on = [] {};  // called after each block of a file, so that a long save does not look like a hang
  // Sends and receives messages at once, as Axis::swap. Only snapshots on several hosts need it.
  std::function<void(const std::vector<ByteMessage>& sent, const std::vector<ByteMessage>& received)> swap =
      [](const auto&, const auto&) {};
  std::vector<int> hosts = {};  // the host of each rank, as in Problem::hosts; if there are none, all are on one host

  bool share_host(int a, int b) const {
    return hosts.empty() || hosts[static_cast<std::size_t>(a)] == hosts[static_cast<std::size_t>(b)];
  }
};

struct Manifest;  // manifest.hpp
struct StoredTensor;

struct SavedSet {
  int file_systems = 1;    // number of file systems with files of the set; 1 if all ranks share a file system
                           // (checkpoint_hosts.hpp)
  std::int64_t bytes = 0;  // size of all ranks' files and of the manifest
};

// Saves a checkpoint. All ranks must call this function. `mine`: the parts that this rank writes. The parts of all ranks
// must cover every element of each tensor exactly once. So if several ranks have copies of a part, only one of these ranks
// passes the part. On return, the set is on disk and `latest` points to it. If a rank fails, all ranks throw, and earlier
// sets remain intact. BackgroundSave saves while the run continues.
SavedSet save_checkpoint(const std::filesystem::path& folder, const Metadata& metadata, const std::vector<StateTensor>& mine,
                         const Peers& peers = {});

class Checkpoint {
 public:
  // All ranks must call this function. `path` is one set, a folder of sets, or the folder of a run. If `path` is not one
  // set, the newest undamaged set is opened.
  static Checkpoint open(const std::filesystem::path& path, Log& log, const Peers& peers = {});
  // A file of a checkpoint in memory. `holders`: the ranks that have opened it, on any host. `file`: −1 on all other ranks.
  struct MemoryFile {
    int file = -1;
    std::vector<int> holders;
  };
  // All ranks must call this function. The checkpoint consists of snapshots in memory (snapshot.hpp). `files`: one for each
  // rank of the start that kept them. `name`: the path that messages show. Throws on every rank if a snapshot is damaged.
  static Checkpoint of_memory(const std::string& name, const Manifest& manifest, const std::vector<MemoryFile>& files,
                              const Peers& peers);
  ~Checkpoint();
  Checkpoint(Checkpoint&&) noexcept;

  const std::filesystem::path& path() const;
  const Metadata& metadata() const;
  std::vector<StateTensor> tensors() const;  // names, shapes and types of all saved tensors; the data pointers are null

  void require_model(const ModelShape& here) const;  // throws a usage error that names the first difference between the two
                                                     // models
  // Fills the data of these tensors. Throws a usage error if the checkpoint has no tensor of that name, shape and type. If
  // the checkpoint is in memory, all ranks must call this function, because parts can be on other hosts.
  void read(const std::vector<StateTensor>& wanted) const;

 private:
  struct Set;
  class Distant;
  void fill(const StateTensor& tensor, const StoredTensor& stored,
            const std::map<std::size_t, std::vector<std::byte>>& brought) const;
  explicit Checkpoint(std::unique_ptr<const Set> set);
  std::unique_ptr<const Set> set_;
};

}  // namespace chorale
