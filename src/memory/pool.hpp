// A caching allocator, which keeps freed blocks and reuses them. Fresh pages would cost more time, because the kernel must
// clear and map them. Training steps request mostly the same sizes in the same order. However, the number of rows of an
// expert varies between steps, so a kept block also serves a request if the block is at most an eighth larger than the
// request. If the kept bytes exceed twice the peak of allocated (lent) bytes, all kept blocks are freed.
//
//   held    │ lent: the requested bytes, as the ledger counts them │ spare │ kept blocks │      kept = spare + kept blocks
//
// The spare bytes at the ends of allocated blocks can neither be reused nor freed. A pool with a limit therefore allows no
// spare bytes. The blocks of such a pool serve only requests of exactly their size, and the rank holds no more than its
// limit.
#pragma once
#include <iterator>
#include <map>
#include <unordered_map>

#include "src/memory/memory_before.hpp"

namespace chorale {

class Pool final : public MemoryBefore {
 public:
  explicit Pool(Memory& from) : MemoryBefore(from) {}
  ~Pool() override;
  // For a rank with little memory: frees kept blocks so that allocated and kept bytes together do not exceed this limit.
  // Allocated blocks alone can exceed the limit. The value 0 means no limit.
  void hold_at_most(std::int64_t bytes) { most_held_ = bytes; }
  void* take(std::int64_t bytes) override;
  void give_back(void* place, std::int64_t bytes) noexcept override;
  KeptBlocks kept() const override { return {kept_bytes_ + spare_, kept_.empty() ? 0 : std::prev(kept_.end())->first}; }
  void return_kept() noexcept override { empty(); }
  // Pool does not override free_bytes(), which does not count the kept blocks. Callers use free_bytes() only after a failed
  // take(), which has already freed the kept blocks.

 private:
  void* kept_for(std::int64_t bytes, std::int64_t& size);
  void return_kept_until(std::int64_t held) noexcept;
  void empty() noexcept { return_kept_until(-1); }  // −1: also frees blocks of 0 bytes
  std::multimap<std::int64_t, void*> kept_;         // freed blocks, keyed by size in bytes
  std::unordered_map<void*, std::int64_t> larger_;  // the sizes of allocated blocks that are larger than their requests
  std::int64_t kept_bytes_ = 0, spare_ = 0, lent_ = 0, most_lent_ = 0, most_held_ = 0;
};

}  // namespace chorale
