// Contiguous memory for the tensors that come and go in a step (defragmentation in ZeRO-R, Rajbhandari et al. 2020). All
// steps make the same requests in the same order. The first step gets its blocks from the memory behind the arena. Their
// sizes and lifetimes are recorded, and determine a place for each in one piece of memory (offline_placement.hpp). From the
// second step on, request i gets the i-th place. So a step leaves no holes: after it, the piece is one free block.
//
//   first step    record    request 0, 1, 2 …: bytes, and when each is returned
//   between       plan      │ 0 ······· │ 1 · │ 2 ··· │      one piece, taken from the memory behind
//   later steps   replay    request i → place i, if it fits there; else from the memory behind, which is counted
//
// The memory behind serves a request in three cases: the request needs more bytes than planned (the rows of an expert vary),
// its place is still lent (a message has not arrived yet), or its block outlived the first step. The memory behind also
// serves requests between steps, which are not counted.
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
  void end_step();  // the first call throws if there is no room for the piece

  struct Report {
    std::int64_t bytes = 0, least = 0;        // size of the piece; the most bytes that lived at once in the first step
    std::int64_t served = 0, unplanned = 0;   // requests of later steps that got their planned place, and those that did not
    std::int64_t largest_free = 0, free = 0;  // of the piece, now
  };
  Report report() const;

  void* take(std::int64_t bytes) override;
  void give_back(void* place, std::int64_t bytes) noexcept override;
  KeptBlocks kept() const override;
  void return_kept() noexcept override { from_.return_kept(); }

 private:
  enum class Phase : std::uint8_t { waits, records, between, replays };
  void plan();
  void* planned(std::int64_t bytes);  // returns the place of the next request; null: its place cannot serve it
  bool is_free(std::int64_t first, std::int64_t bytes) const;

  Phase phase_ = Phase::waits;
  std::vector<Lifetime> requests_;               // of the first step; the end is 0 if a block outlived the step
  std::unordered_map<void*, std::size_t> open_;  // requests of the first step whose blocks are still lent
  std::int64_t time_ = 0;
  std::vector<std::int64_t> offsets_;  // by request; −1: served by the memory behind
  std::size_t next_ = 0;               // number of the next request
  std::byte* piece_ = nullptr;
  std::map<std::int64_t, std::int64_t> lent_;  // lent ranges of the piece: first → bytes
  Report report_;
};

}  // namespace chorale
