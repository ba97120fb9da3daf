// Allocates device memory from NCCL (ncclMemAlloc), in blocks that can be registered with NCCL communicators
// (ncclCommRegister). Peers access registered memory directly, over NVLink, NVSwitch and the network. NCCL copies
// unregistered memory through its own buffers.
//
//   block   [ buffer a ············ ]   [ b | c | d | free ······ ]     a buffer of at least 2 MiB (NCCL's page) has its own
//               ▲             ▲             ▲                           block; smaller buffers share a block of 8 MiB
//   links     (one per group, nccl_link.cuh) register a block when a call first uses it; deregister it before it is freed
//
// The buffers of one call must be registered with NCCL on all ranks or on none. Buffer sizes can differ between ranks, so
// even small buffers are allocated in blocks from NCCL.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <optional>

#include "src/memory/cuda_memory.cuh"
#include "src/memory/ranges.hpp"

namespace chorale::nccl {

struct NcclBlock {
  std::byte* start = nullptr;
  std::int64_t bytes = 0;
};

class NcclBlocks final : public DeviceLender {
 public:
  // `let_go` makes all groups (links) deregister a block. `let_go` returns false if a link cannot deregister the block now.
  explicit NcclBlocks(std::function<bool(const NcclBlock&)> let_go) : let_go_(std::move(let_go)) {}
  ~NcclBlocks() override;

  void* take(std::int64_t bytes) override;
  void give_back(void* place, std::int64_t bytes) noexcept override;
  std::optional<NcclBlock> holding(const void* place);  // empty if the address is in no block

 private:
  struct Lent {  // a block from NCCL
    std::int64_t bytes;
    std::optional<FreeRanges> parts = {};  // the free parts of a shared block; a shared block is never freed
    bool is_over = false;  // whether the user has returned it; it is freed once all links have deregistered it
  };
  using Map = std::map<std::byte*, Lent>;

  Map::iterator find(const void* place);
  Map::iterator lend(std::int64_t bytes);
  void sweep() noexcept;

  std::function<bool(const NcclBlock&)> let_go_;
  Map lent_;
};

}  // namespace chorale::nccl
