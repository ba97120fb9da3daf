// Snapshots of a training run in the memory of its hosts, from which the next start of the run can continue. A snapshot has
// the contents of a checkpoint. Instead of writing files, each rank copies its parts into memory that the keeper of the host
// also holds (src/base/keeper/). On several hosts, a second copy is on another host (buddies.hpp).
//
//   step N ─ copy the parts, with checksums ─ step N+1 …        on one host: no message and no collective
//                └─ send what the buddy lacks ─┘                 on several hosts: one message per rank
//
// Cost: one copy of the state per snapshot, divided among the ranks; memory for two copies. Both generations of a rank have
// the same size in every step, because the parts of a rank never change. On several hosts: twice the copies and the memory,
// and each rank sends the bytes that its buddy does not hold.
//
// Two generations are enough (kept.hpp): no rank completes step N+1 before all ranks have begun it, with their copies of
// step N complete.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "parallel/state/checkpoint.hpp"
#include "parallel/state/snapshot_image.hpp"
#include "src/base/keeper/keeper.hpp"

namespace chorale {

// The images of a rank: first that of its own parts, and then those of the ranks whose buddy it is.
struct SnapshotPlan {
  std::vector<ImagePlan> images;
  int buddy = -1;  // the rank that keeps a copy of the first image; −1: none

  std::int64_t memory_bytes() const;  // of both generations of all images on this rank
  std::int64_t sent_bytes() const;    // to the buddy, in each snapshot
};
// Collective. `state`: this rank's whole state, including copies (resume.hpp).
SnapshotPlan snapshot_plan(const std::vector<StateTensor>& state, const Peers& peers);

class Snapshots {
 public:
  // Not collective. Allocates the memory, and gives it to the keeper. Throws an error if the memory cannot be allocated, or
  // if the keeper does not take it.
  Snapshots(const SnapshotPlan& plan, const std::vector<StateTensor>& state, const std::string& keeper, std::int64_t start,
            const Peers& peers);

  void take(const std::vector<StateTensor>& state, const Metadata& metadata);  // after a step; collective on several hosts
  std::int64_t bytes() const { return images_[0].plan().bytes(); }             // of this rank's parts in one generation

 private:
  bool give_to_keeper();

  const Peers peers_;
  const std::string keeper_name_;
  const std::int64_t start_;
  KeeperLine keeper_;
  int buddy_;
  std::vector<SnapshotImage> images_;
  std::vector<std::vector<std::size_t>> sources_;  // for each piece of each image, its index in the state
};

// Collective. Opens the newest snapshot that is complete and undamaged, and not older than `oldest`. Returns nullopt if
// there is none. Damaged snapshots are skipped with a warning.
std::optional<Checkpoint> newest_snapshot(KeeperLine& keeper, std::int64_t oldest, const Peers& peers, Log& log);

}  // namespace chorale
