// The buffers of the benchmarked calls. With hot buffers, every call uses the same slot. With cold buffers, the calls rotate
// through slots that are together twice as large as the last-level cache. The order of the slots defeats the prefetcher, so
// a call never finds its slot in a cache.
//
//   cold   |slot 0|slot 1|slot 2|slot 3|slot 4|   i-th call: slot (i · step) mod slots, step near 0.618 · slots
#pragma once
#include <cstdint>

#include "src/memory/buffer.hpp"

namespace chorale::bench {

class Buffers {
 public:
  Buffers(Allocator& allocator, bool cold) : allocator_(allocator), cold_(cold) {}

  // Ensures that each slot has space for an input and an output of `bytes` bytes each. If the allocation must grow, the
  // complete new allocation is written once, and earlier pointers become invalid.
  void lend(std::int64_t bytes);
  void* input(std::int64_t call) const { return place(call, 0); }
  void* output(std::int64_t call) const { return place(call, stride_ / 2); }
  Memory& memory() const { return allocator_.memory(); }
  std::int64_t slots() const { return slots_; }

 private:
  void* place(std::int64_t call, std::int64_t offset) const;

  Allocator& allocator_;
  bool cold_;
  Buffer memory_;
  std::int64_t stride_ = 0, slots_ = 1, step_ = 1;
};

}  // namespace chorale::bench
