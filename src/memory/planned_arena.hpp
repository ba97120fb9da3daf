// Contiguous memory for the tensors that are created and freed in a step (defragmentation in ZeRO-R, Rajbhandari et al.
// 2020). All steps make the same requests in the same order. In the first step, the arena gets its blocks from the inner
// memory and records their sizes and lifetimes. After the first step, the arena plans a slot for each request in one
// contiguous range of memory (offline_placement.hpp). From the second step on, request i gets slot i. A step therefore
// leaves no holes. After the step, the range is one free block.
//
//   first step    record    request 0, 1, 2 …: bytes, and when each is returned
//   between       plan      │ 0 ······· │ 1 · │ 2 ··· │      one range, taken from the inner memory
//   later steps   replay    request i → slot i if it fits; otherwise from the inner memory, which is counted
//
// The inner memory serves a request in four cases. In the first case, the request needs more bytes than planned, because the
// number of rows of an expert varies. In the second case, the slot of the request is still in use, because a message has not
// arrived yet. In the third case, the first step made fewer requests. Requests in the first three cases are counted as
// unplanned. The fourth case, which is not counted, is a request whose block outlived the first step. The inner memory also
// serves requests between steps; these requests are not counted either.
#pragma once
#include <map>
#include <unordered_map>
#include <vector>

#include "src/memory/memory_before.hpp"
#include "src/memory/offline_placement.hpp"

namespace chorale {

class PlannedArena final : public MemoryBefore {
 public:
  explicit PlannedArena(Memory& from) : MemoryBefore(from) {}
  ~PlannedArena() override;
  PlannedArena(const PlannedArena&) = delete;

  void begin_step();
  void end_step();  // the first call throws if the inner memory cannot provide the range

  struct Report {
    std::int64_t bytes = 0, least = 0;        // `bytes` is the size of the range; `least` is the maximum number of bytes
                                              // alive at the same time in the first step
    std::int64_t served = 0, unplanned = 0;   // numbers of requests in later steps: `served` requests got their slot;
                                              // `unplanned` requests had no slot or did not fit
    std::int64_t largest_free = 0, free = 0;  // size of the largest free block, and number of free bytes, in the range now
  };
  Report report() const;

  void* take(std::int64_t bytes) override;
  void give_back(void* place, std::int64_t bytes) noexcept override;
  KeptBlocks kept() const override;
  void return_kept() noexcept override { from_.return_kept(); }

 private:
  enum class Phase : std::uint8_t { waits, records, between, replays };
  void plan();
  void* planned(std::int64_t bytes);  // returns the slot of the next request, or null if the slot cannot serve the request
  bool is_free(std::int64_t first, std::int64_t bytes) const;

  Phase phase_ = Phase::waits;
  std::vector<Lifetime> requests_;               // the requests of the first step; the end is 0 if a block outlived the step
  std::unordered_map<void*, std::size_t> open_;  // the first step's requests with blocks that are still allocated
  std::int64_t time_ = 0;
  std::vector<std::int64_t> offsets_;  // indexed by request; −1 if the inner memory serves the request
  std::size_t next_ = 0;               // number of the next request
  std::byte* piece_ = nullptr;
  std::map<std::int64_t, std::int64_t> lent_;  // maps the first byte of each allocated part of the range to the part's size
  Report report_;
};

}  // namespace chorale
