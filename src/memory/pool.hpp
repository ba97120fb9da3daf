// Memory that keeps returned blocks and lends them again, because fresh pages from the kernel must first be cleared and
// mapped. A training step requests mostly the same sizes in the same order every time. But the rows of an expert change from
// step to step. So a block also serves requests that are up to an eighth smaller. And if the kept bytes are more than twice
// the most that were ever lent at once, all kept blocks are returned.
//
//   held    │ lent: what was requested, as the ledger counts it │ spare │ kept blocks │      kept = spare + kept blocks
//
// The spare bytes at the ends of lent blocks can neither be lent nor be returned. So a pool with a limit has none: there a
// block serves only requests of its size, and the rank holds no more than its limit.
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
  // Returns kept blocks so that lent and kept ones stay below this; lent blocks alone may exceed it. 0: no limit. For a rank
  // whose memory is scarce.
  void hold_at_most(std::int64_t bytes) { most_held_ = bytes; }
  void* take(std::int64_t bytes) override;
  void give_back(void* place, std::int64_t bytes) noexcept override;
  KeptBlocks kept() const override { return {kept_bytes_ + spare_, kept_.empty() ? 0 : std::prev(kept_.end())->first}; }
  void return_kept() noexcept override { empty(); }
  // free_bytes() does not count the kept blocks. Callers ask only after a failed take(), which has first returned them.

 private:
  void* kept_for(std::int64_t bytes, std::int64_t& size);
  void return_kept_until(std::int64_t held) noexcept;
  void empty() noexcept { return_kept_until(-1); }  // blocks of 0 bytes too
  std::multimap<std::int64_t, void*> kept_;         // returned blocks, by size in bytes
  std::unordered_map<void*, std::int64_t> larger_;  // the sizes of lent blocks that are larger than requested
  std::int64_t kept_bytes_ = 0, spare_ = 0, lent_ = 0, most_lent_ = 0, most_held_ = 0;
};

}  // namespace chorale
