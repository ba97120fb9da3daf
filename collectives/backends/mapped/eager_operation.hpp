// An EagerOperation runs a collective with small data. A rank copies everything that it sends to the cells (cell.hpp) of its
// own flag page, and returns without waiting for its readers. The readers copy the data from there. Peers never access the
// caller's buffers, so mapped and ordinary buffers are treated alike.
//
//   rank 0   fills cells ……… polls rank 1's cells ……… done          one line written and one line read per 56 bytes and peer
//   rank 1        fills cells ……… polls rank 0's cells ……… done
//
// Invariants:
//   - Only the owner writes to its cells. In call s, the owner writes to the cells of slot s modulo 8.
//   - The owner writes to the cells of call s only after all members have finished call s − 8 (MappedGroup::may_enter). So
//     no reader still needs the earlier contents.
//   - The tag of a cell is written after its data, and none of the 2³² calls before had this tag. It has the number of the
//     call and half of the hash of all calls so far. So if two ranks make different calls, they do not take each other's
//     data for their own: both wait, and examine() names the calls.
//
// tests/collectives/backends/cells_test.cpp explores a model of this protocol: every order of the loads and stores of a few
// ranks.
#pragma once
#include "collectives/backends/mapped/group.hpp"
#include "collectives/backends/mapped/program.hpp"

namespace chorale::mapped {

class EagerOperation final : public Operation {
 public:
  EagerOperation(MappedGroup& group, const Plan& plan, Program program);

  void start(const Run& run) override;
  bool progress() override;
  std::uint64_t moved() const override { return moved_; }
  void examine() override;
  int awaits() override;
  void abandon() noexcept override;

 private:
  // A message that a step receives.
  struct Arrival {
    int rank;
    std::int64_t first, bytes;        // position of the first byte among the data of the cells, and length
    std::size_t copy;                 // for a sum of more than one cell: where in room_ the data are copied to
    std::int64_t done = 0;            // bytes copied so far
    const std::byte* data = nullptr;  // for a sum: the data
  };
  struct Task {
    const Action* action;
    std::size_t first_arrival, arrivals;  // indices in arrivals_
    bool done = false;
  };

  bool enter();
  bool perform(Task& task);  // returns whether the step is done
  bool sum(Task& task);
  void leave();
  const EagerCell* cells_on(const FlagPage& page) const { return page.slot[run_.sequence % slots].cells; }
  std::byte* own(const Spot& spot) const { return place_[static_cast<int>(spot.place)] + spot.first * element_; }

  MappedGroup& group_;
  const Plan plan_;
  const std::int64_t element_;
  const Program program_;
  Buffer scratch_;
  std::vector<std::byte> room_;  // copies of received addends; sums can make progress together, so each has its own part
  std::vector<Arrival> arrivals_;
  std::vector<Task> tasks_;
  std::vector<const void*> sources_;

  Run run_;
  Slot* slot_ = nullptr;
  std::byte* place_[3] = {};
  bool running_ = false, entered_ = false;
  std::uint64_t moved_ = 0, tag_ = 0;
  std::size_t first_open_ = 0;
};

}  // namespace chorale::mapped
