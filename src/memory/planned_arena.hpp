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
// The inner memory serves a request in four cases. The request needs more bytes than planned, because the number of rows of
// an expert varies. Or its slot is still in use, because a message has not arrived yet. Or the first step made fewer
// requests. These three cases are counted as unplanned. The fourth case, which is not counted, is a request whose block
// outlived the first step. The inner memory also serves requests between steps, which are not counted either.
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
  void end_step();  // the first call throws if there is no room for the range

  struct Report {
    std::int64_t bytes = 0, least = 0;        // size of the range; the most bytes that were alive at the same time in the
                                              // first step
    std::int64_t served = 0, unplanned = 0;   // requests of later steps that got their slot, and requests that had none or
                                              // did not fit
    std::int64_t largest_free = 0, free = 0;  // current largest free block and free bytes of the range
  };
  Report report() const;

  void* take(std::int64_t bytes) override;
  void give_back(void* place, std::int64_t bytes) noexcept override;
  KeptBlocks kept() const override;
  void return_kept() noexcept override { from_.return_kept(); }

 private:
  enum class Phase : std::uint8_t { waits, records, between, replays };
  void plan();
  void* planned(std::int64_t bytes);  // returns the slot of the next request; null: the slot cannot serve it
  bool is_free(std::int64_t first, std::int64_t bytes) const;

  Phase phase_ = Phase::waits;
  std::vector<Lifetime> requests_;               // the requests of the first step; the end is 0 if a block outlived the step
  std::unordered_map<void*, std::size_t> open_;  // the first step's requests with blocks that are still lent
  std::int64_t time_ = 0;
  std::vector<std::int64_t> offsets_;  // indexed by request; −1: served by the inner memory
  std::size_t next_ = 0;               // number of the next request
  std::byte* piece_ = nullptr;
  std::map<std::int64_t, std::int64_t> lent_;  // lent parts of the range: first byte → bytes
  Report report_;
};

}  // namespace chorale
