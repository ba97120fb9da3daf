// Snapshots of a training run in the memory of its host, from which the next start of the run can continue. A snapshot has
// the contents of a checkpoint. Instead of writing files, each rank copies its parts into memory that the keeper of the host
// also holds (src/base/keeper/).
//
//   step N ─ copy the parts, with checksums ─ step N+1 …        no message, no system call, no collective
//
// Cost: one copy of the state per snapshot, divided among the ranks; memory for two copies. Both generations of a rank have
// the same size in every step, because the parts of a rank never change.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "parallel/state/checkpoint.hpp"
#include "src/base/keeper/keeper.hpp"

namespace chorale {

class Snapshots {
 public:
  // Not collective. Allocates the memory, and gives it to the keeper. `mine`: the parts that this rank saves, as for
  // save_checkpoint. Throws an error if the memory cannot be allocated, or if the keeper does not take it.
  Snapshots(const std::vector<StateTensor>& mine, KeeperLine& keeper, std::int64_t start, const Peers& peers);
  ~Snapshots();
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;

  void take(const std::vector<StateTensor>& mine, const Metadata& metadata);  // after a step; not collective
  std::int64_t bytes() const { return bytes_; }                               // of this rank's parts in one generation

  static std::int64_t bytes_of(const std::vector<StateTensor>& mine);  // of both generations on this rank

 private:
  struct Generation {
    KeptFiles files;
    std::span<std::byte> info, image;
  };
  static Generation new_generation(const std::string& name, std::size_t info_bytes, std::size_t image_bytes);

  std::string begin_;
  std::vector<std::size_t> order_;  // for each tensor to save, its index in the manifest
  std::size_t header_bytes_ = 0;
  std::int64_t bytes_ = 0;
  std::uint32_t begin_checksum_ = 0;
  std::array<Generation, kept_generations> generations_;
  std::size_t next_ = 0;
};

// Collective. Opens the newest snapshot that is complete and undamaged, and not older than `oldest`. Returns nullopt if
// there is none. Damaged snapshots are skipped with a warning.
std::optional<Checkpoint> newest_snapshot(KeeperLine& keeper, std::int64_t oldest, const Peers& peers, Log& log);

}  // namespace chorale
