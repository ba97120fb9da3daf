// The device's memory as NCCL lends it (ncclMemAlloc), in blocks that its communicators can be told of (ncclCommRegister): then peers read and
// write what lies in them by themselves, over NVLink, its switches and the network, where NCCL would else copy it through buffers of its own.
//
//   block   [ a ··················· ]   [ b | c | d | free ······ ]     from 2 MiB up a buffer has one alone, as NCCL lends whole pages
//               ▲             ▲             ▲                           of 2 MiB; smaller ones share some of 8 MiB
//   links     told once, when a call's buffer first lies in it; they let go of it before it goes back
//
// NCCL wants the buffers of one call registered on all ranks or on none of them. Ranks may hold other sizes, so all buffers lie in such blocks.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <optional>

#include "src/memory/cuda_memory.cuh"
#include "src/memory/ranges.hpp"

namespace chorale::nccl {

struct Block {
  std::byte* start = nullptr;
  std::int64_t bytes = 0;
};

class Blocks final : public DeviceLender {
 public:
  // `let_go` has all links forget a block; false where one cannot at the moment.
  explicit Blocks(std::function<bool(const Block&)> let_go) : let_go_(std::move(let_go)) {}
  ~Blocks() override;

  void* take(std::int64_t bytes) override;
  void give_back(void* place, std::int64_t bytes) noexcept override;
  std::optional<Block> holding(const void* place);  // none where it is not from here

 private:
  struct Lent {
    std::int64_t bytes;
    std::optional<FreeRanges> parts = {};  // of one that is shared: these stay
    bool is_over = false;                  // given back, and to go as soon as all links have let go
  };
  using Map = std::map<std::byte*, Lent>;

  Map::iterator find(const void* place);
  Map::iterator lend(std::int64_t bytes);
  void sweep() noexcept;

  std::function<bool(const Block&)> let_go_;
  Map lent_;
};

}  // namespace chorale::nccl
