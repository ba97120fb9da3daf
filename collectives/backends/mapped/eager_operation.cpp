#include "collectives/backends/mapped/eager_operation.hpp"

#include <algorithm>
#include <cstring>

#include "src/base/error.hpp"
#include "src/base/index.hpp"
#include "src/base/round_up.hpp"

namespace chorale::mapped {

EagerOperation::EagerOperation(MappedGroup& group, const Plan& plan, Program program)
    : group_(group), plan_(plan), element_(size_of(plan.dtype)), program_(std::move(program)) {
  if (program_.scratch_count > 0)
    scratch_ = group.reach().memory().allocate(program_.scratch_count * element_, Category::comm);
  place_[index(static_cast<int>(Place::scratch))] = static_cast<std::byte*>(scratch_.data());
  std::size_t most_sources = 1, copied = 0;
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
    most_sources = std::max(most_sources, action.from.size());
    tasks_.push_back(task);
  }
  sources_.resize(most_sources);
  room_.resize(copied);
}

void EagerOperation::start(const Run& run) {
  require(!running_, "{} was started before its last run was over", plan_.words);
  run_ = run;
  running_ = true;
  entered_ = false;
}

bool EagerOperation::progress() {
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
  leave();
  return true;
}

bool EagerOperation::enter() {
  if (!group_.may_enter(run_.sequence)) return false;
  slot_ = &group_.own().slot[run_.sequence % slots];
  tag_ = tag_of(run_.sequence) | (run_.history & (tag_of(1) - 1));
  store_release(slot_->history, run_.history);
  group_.say(*slot_, plan_);
  store_release(slot_->word, tag_of(run_.sequence));
  place_[static_cast<int>(Place::input)] = static_cast<std::byte*>(run_.input);
  place_[static_cast<int>(Place::output)] = static_cast<std::byte*>(run_.output);
  for (Task& task : tasks_) task.done = false;
  for (Arrival& arrival : arrivals_) arrival.done = 0;
  first_open_ = 0;
  return entered_ = true;
}

bool EagerOperation::perform(Task& task) {
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
bool EagerOperation::sum(Task& task) {
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

void EagerOperation::examine() {
  group_.throw_if_poisoned();
  if (!running_) return;
  group_.throw_if_left(run_.sequence, plan_.words);
  if (entered_) group_.throw_if_calls_differ(run_.sequence, run_.history);
}

int EagerOperation::awaits() {
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

void EagerOperation::abandon() noexcept {
  if (entered_) store_release(slot_->history, abandoned);
}

// Prefetches the cells of the next call for writing, because readers' caches hold copies of these cache lines.
void EagerOperation::leave() {
  running_ = false;
  group_.finished(run_.sequence);
  Slot& next = group_.own().slot[(run_.sequence + 1) % slots];
  __builtin_prefetch(&next, 1);
  for (std::int64_t line = 0; line < program_.lines; ++line) __builtin_prefetch(&next.cells[line], 1);
}

}  // namespace chorale::mapped
