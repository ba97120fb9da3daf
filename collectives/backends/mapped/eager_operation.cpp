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
#include "collectives/backends/mapped/operation.hpp"

#include <algorithm>
#include <cstring>

#include "src/base/round_up.hpp"

namespace chorale::mapped {
namespace {

class EagerOperation final : public ProgramOperation {
 public:
  EagerOperation(MappedGroup& group, const Plan& plan, Program program) : ProgramOperation(group, plan, std::move(program)) {
    if (program_.scratch_count > 0)
      scratch_ = group.reach().memory().allocate(program_.scratch_count * element_, Category::comm);
    place_[index(static_cast<int>(Place::scratch))] = static_cast<std::byte*>(scratch_.data());
    std::size_t copied = 0;
    for (const Action& action : program_.actions) {
      Task task{&action, arrivals_.size(), 0};
      for (const Spot& spot : action.from) {
        if (spot.rank == group.rank()) continue;
        const std::int64_t bytes = action.count * element_;
        arrivals_.push_back({spot.rank, spot.staged * element_, bytes, copied});
        if (action.kind == Kind::recv_reduce && cells_of(spot.staged * element_, bytes) > 1)
          copied += index(round_up(bytes, line_bytes));
      }
      task.arrivals = arrivals_.size() - task.first_arrival;
      tasks_.push_back(task);
    }
    room_.resize(copied);
  }

  bool progress() override {
    if (!running_) return true;
    if (!entered_ && !enter()) return false;
    for (std::size_t t = first_open_; t < tasks_.size(); ++t) {
      Task& task = tasks_[t];
      if (!task.done && perform(task)) {
        task.done = true;
        ++moved_;
      }
      if (task.done && t == first_open_) ++first_open_;
    }
    if (first_open_ < tasks_.size()) return false;
    // Prefetches the cells of the next call for writing, because readers' caches hold copies of these cache lines.
    const Slot& next = leave_slot();
    for (std::int64_t line = 0; line < program_.lines; ++line) __builtin_prefetch(&next.cells[line], 1);
    return true;
  }

  void examine() override {
    ProgramOperation::examine();
    if (running_ && entered_) group_.throw_if_calls_differ(run_.sequence, run_.history);
  }

  int awaits() override {
    if (!running_) return -1;
    if (!entered_) return group_.slowest();
    for (const Task& task : tasks_)
      for (std::size_t a = task.first_arrival; !task.done && a < task.first_arrival + task.arrivals; ++a) {
        const Arrival& arrival = arrivals_[a];
        const FlagPage* page = group_.page_of(arrival.rank);
        if (!page || !is_filled(cells_on(*page)[(arrival.first + arrival.bytes - 1) / EagerCell::data_bytes], tag_))
          return arrival.rank;
      }
    return -1;
  }

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

  bool enter() {
    if (!enter_slot()) return false;
    tag_ |= run_.history & (tag_of(1) - 1);
    group_.say(*slot_, plan_);
    store_release(slot_->word, tag_of(run_.sequence));
    place_[static_cast<int>(Place::input)] = static_cast<std::byte*>(run_.input);
    place_[static_cast<int>(Place::output)] = static_cast<std::byte*>(run_.output);
    for (Task& task : tasks_) task.done = false;
    for (Arrival& arrival : arrivals_) arrival.done = 0;
    return entered_ = true;
  }

  // Returns whether the step is done.
  bool perform(Task& task) {
    const Action& action = *task.action;
    for (const int before : action.after)
      if (!tasks_[index(before)].done) return false;
    const std::int64_t bytes = action.count * element_;
    switch (action.kind) {
      case Kind::send:
        fill_cells(slot_->cells + action.fill.staged * element_ / EagerCell::data_bytes, own(action.fill),
                   action.fill_count * element_, tag_);
        return true;
      case Kind::copy: std::memmove(own(action.into), own(action.from[0]), index(bytes)); return true;
      case Kind::recv: {
        Arrival& arrival = arrivals_[task.first_arrival];
        const FlagPage* page = group_.page_of(arrival.rank);
        return page && take_cells(cells_on(*page), arrival.first, own(action.into), bytes, arrival.done, tag_);
      }
      case Kind::recv_reduce:
      case Kind::reduce: return sum(task);
    }
    return true;
  }

  // Adds the data of single cells in place. Longer messages are first copied to room_, because the data of cells are not
  // contiguous.
  bool sum(Task& task) {
    const Action& action = *task.action;
    bool complete = true;
    for (std::size_t a = task.first_arrival; a < task.first_arrival + task.arrivals; ++a) {
      Arrival& arrival = arrivals_[a];
      const FlagPage* page = group_.page_of(arrival.rank);
      if (!page) return false;
      const EagerCell* const cells = cells_on(*page);
      if (cells_of(arrival.first, arrival.bytes) == 1) {
        const EagerCell& cell = cells[arrival.first / EagerCell::data_bytes];
        arrival.data = cell.data + arrival.first % EagerCell::data_bytes;
        complete = is_filled(cell, tag_) && complete;
      } else {
        std::byte* const copy = room_.data() + arrival.copy;
        arrival.data = copy;
        complete = take_cells(cells, arrival.first, copy, arrival.bytes, arrival.done, tag_) && complete;
      }
    }
    if (!complete) return false;
    std::size_t arrived = task.first_arrival;
    for (std::size_t s = 0; s < action.from.size(); ++s)
      sources_[s] = action.from[s].rank == group_.rank() ? own(action.from[s]) : arrivals_[arrived++].data;
    reduce(plan_.op, plan_.dtype, own(action.into), std::span(sources_.data(), action.from.size()), action.count);
    return true;
  }

  const EagerCell* cells_on(const FlagPage& page) const { return page.slot[run_.sequence % slots].cells; }
  std::byte* own(const Spot& spot) const { return place_[static_cast<int>(spot.place)] + spot.first * element_; }

  Buffer scratch_;
  std::vector<std::byte> room_;  // copies of received addends; sums can make progress together, so each has its own part
  std::vector<Arrival> arrivals_;
  std::vector<Task> tasks_;
  std::byte* place_[3] = {};
};

}  // namespace

std::unique_ptr<Operation> eager_operation(MappedGroup& group, const Plan& plan, Program program) {
  return std::make_unique<EagerOperation>(group, plan, std::move(program));
}

}  // namespace chorale::mapped
