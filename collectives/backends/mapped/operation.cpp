#include "collectives/backends/mapped/operation.hpp"

#include <algorithm>

#include "src/base/error.hpp"

namespace chorale::mapped {

ProgramOperation::ProgramOperation(MappedGroup& group, const Plan& plan, Program program)
    : group_(group), plan_(plan), element_(size_of(plan.dtype)), program_(std::move(program)) {
  std::size_t most_sources = 1;
  for (const Action& action : program_.actions) most_sources = std::max(most_sources, action.from.size());
  sources_.resize(most_sources);
}

void ProgramOperation::start(const Run& run) {
  require(!running_, "{} was started before its last run was over", plan_.words);
  run_ = run;
  running_ = true;
  entered_ = false;
}

bool ProgramOperation::enter_slot() {
  if (!group_.may_enter(run_.sequence)) return false;
  slot_ = &group_.own().slot[run_.sequence % slots];
  tag_ = tag_of(run_.sequence);
  first_open_ = 0;
  store_release(slot_->history, run_.history);
  return true;
}

// Prefetches the first cache line of the next slot for writing, because other cores might hold copies of this line.
Slot& ProgramOperation::leave_slot() {
  running_ = false;
  group_.finished(run_.sequence);
  Slot& next = group_.own().slot[(run_.sequence + 1) % slots];
  __builtin_prefetch(&next, 1);
  return next;
}

void ProgramOperation::examine() {
  group_.throw_if_poisoned();
  if (running_) group_.throw_if_left(run_.sequence, plan_.words);
}

void ProgramOperation::abandon() noexcept {
  if (entered_) store_release(slot_->history, abandoned);
}

}  // namespace chorale::mapped
