// The memory of a Training on one rank, and the bytes copied between this memory and a slow tier.
//
//   memory   a ledger counts every byte; --contiguous-memory puts a step's new tensors into one planned block (the arena)
//   tier     a file or the host's memory, with a separate ledger; exists only if something is offloaded (offload.hpp)
#pragma once
#include <memory>
#include <optional>

#include "parallel/step/offload.hpp"
#include "src/memory/buffer.hpp"
#include "src/memory/planned_arena.hpp"
#include "src/tier/file_tier.hpp"
#include "src/tier/windows.hpp"

namespace chorale {

class RankMemory {
 public:
  // `limit` is the maximum number of bytes that this rank is allowed to hold; 0 means no limit. `device` and `meter` are as
  // in tier_of().
  RankMemory(Memory& memory, std::int64_t limit, bool contiguous, const OffloadOptions& offload, const DevicePlugin* device,
             CopyMeter* meter);
  RankMemory(const RankMemory&) = delete;

  Allocator& allocator() { return allocator_; }
  Ledger& ledger() { return ledger_; }
  const Ledger& ledger() const { return ledger_; }
  KeptBlocks kept() const {
    return arena_ ? arena_->kept() : allocator_.memory().kept();
  }  // size of the free blocks that this rank keeps for reuse
  std::optional<PlannedArena>& arena() { return arena_; }
  const std::optional<PlannedArena>& arena() const { return arena_; }

  Allocator* tier() { return tier_ ? &*tier_ : nullptr; }               // null if nothing is offloaded
  const Memory* tier_memory() const { return in_tier_.get(); }          // null if nothing is offloaded
  FileTier* file() { return dynamic_cast<FileTier*>(in_tier_.get()); }  // null if the tier is not a file
  FileTier::Times file_times() const;                                   // zeros if there is no file
  const Ledger& tier_ledger() const { return tier_ledger_; }
  // Bytes that updates have read from and written to the tier. Skipped steps have no update. Buckets::traffic() counts the
  // bytes that forward and backward passes transfer.
  TierTraffic& updates() { return updates_; }
  const TierTraffic& updates() const { return updates_; }

 private:
  Ledger ledger_;
  std::optional<PlannedArena> arena_;
  Allocator allocator_;
  Ledger tier_ledger_;
  std::unique_ptr<Memory> in_tier_;
  std::optional<Allocator> tier_;
  TierTraffic updates_;
};

}  // namespace chorale
