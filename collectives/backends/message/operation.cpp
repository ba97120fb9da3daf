#include "collectives/backends/message/operation.hpp"

#include <cstring>

#include "src/base/error.hpp"

namespace chorale {

MessageOperation::MessageOperation(const Plan& plan, MessagePlan flat, std::unique_ptr<Messenger> messenger, CallWatch watch,
                                   Allocator workspace, const std::optional<DirectDevice>& device)
    : plan_(std::move(flat)), messenger_(std::move(messenger)), watch_(std::move(watch)) {
  if (plan.on_device) sums_ = std::make_unique<DeviceSums>(device.value(), plan, plan_);
  if (plan_.workspace_bytes > 0) workspace_ = workspace.allocate(plan_.workspace_bytes, Category::workspace);
  bases_[static_cast<std::size_t>(Place::scratch)] = static_cast<std::byte*>(workspace_.data());
  const std::size_t steps = plan_.steps.size();
  waits_.resize(steps);
  under_way_.resize(steps);
  posted_.resize(plan_.messages.size());
  for (Line* line : {&receives_, &sends_, &locals_, &summing_}) line->steps.resize(steps);
  addends_.resize(static_cast<std::size_t>(plan_.most_addends));
}

void MessageOperation::await_input(const void*) {
  if (sums_) sums_->follow_caller();
}

void MessageOperation::start(const Run& run) {
  require(steps_left_ == 0, "an operation was started with {} steps of its last run unfinished", steps_left_);
  bases_[static_cast<std::size_t>(Place::input)] = static_cast<std::byte*>(run.input);
  bases_[static_cast<std::size_t>(Place::output)] = static_cast<std::byte*>(run.output);
  watch_.start(run);
  messenger_->start(run);
  for (Line* line : {&receives_, &sends_, &locals_, &summing_}) line->head = line->tail = 0;
  steps_left_ = static_cast<int>(plan_.steps.size());
  for (int s = 0; s < steps_left_; ++s) {
    const FlatStep& step = flat(s);
    waits_[static_cast<std::size_t>(s)] = step.waits;
    under_way_[static_cast<std::size_t>(s)] = step.messages.last - step.messages.first;
    if (step.waits == 0) enqueue(s);
  }
  begin_all();
}

bool MessageOperation::progress() {
  while (steps_left_ > 0) {
    const std::span<const int> over = messenger_->progress();
    const bool any_summed = sums_ && end_summed();
    if (over.empty() && !any_summed) return false;
    for (const int message : over) {
      posted_[static_cast<std::size_t>(message)] = false;
      const int step = plan_.messages[static_cast<std::size_t>(message)].step;
      if (--under_way_[static_cast<std::size_t>(step)] == 0) finish(step);
    }
    begin_all();
  }
  return !sums_ || sums_->divided(bases_[static_cast<std::size_t>(Place::output)]);
}

void MessageOperation::examine() {
  messenger_->examine();
  watch_.examine();
}

// Returns the peer of an unfinished receive, or if there is none, the peer of an unfinished send.
int MessageOperation::awaits() {
  int sends_to = -1;
  if (steps_left_ == 0) return sends_to;
  for (std::size_t m = 0; m < posted_.size(); ++m) {
    if (!posted_[m]) continue;
    if (plan_.messages[m].incoming) return plan_.messages[m].peer;
    sends_to = plan_.messages[m].peer;
  }
  return sends_to;
}

void MessageOperation::enqueue(int step) {
  const Kind kind = flat(step).kind;
  const bool is_local = kind == Kind::reduce || kind == Kind::copy;
  (kind == Kind::send ? sends_ : is_local ? locals_ : receives_).add(step);
}

void MessageOperation::release(Indices steps) {
  for (int i = steps.first; i < steps.last; ++i) {
    const int step = plan_.released[static_cast<std::size_t>(i)];
    if (--waits_[static_cast<std::size_t>(step)] == 0) enqueue(step);
  }
}

// Local sums and copies start last, so that they overlap with the messages.
void MessageOperation::begin_all() {
  for (;;) {
    if (receives_.any()) {
      post(receives_.take());
    } else if (sends_.any()) {
      post(sends_.take());
    } else if (locals_.any()) {
      finish(locals_.take());
    } else {
      return;
    }
  }
}

void MessageOperation::post(int s) {
  const FlatStep& step = flat(s);
  int& under_way = under_way_[static_cast<std::size_t>(s)];
  for (int m = step.messages.first; m < step.messages.last; ++m)
    if (messenger_->post(m, at(plan_.messages[static_cast<std::size_t>(m)].spot)))
      --under_way;
    else
      posted_[static_cast<std::size_t>(m)] = true;
  release(step.posted);
  if (under_way == 0) finish(s);
}

// Called when the messages of step s have completed. Performs the step's sum or copy, if there is one. On a device, this
// function only enqueues the sum or copy, which completes later.
void MessageOperation::finish(int s) {
  const FlatStep& step = flat(s);
  if (step.kind == Kind::send || step.kind == Kind::recv) return end(s);
  if (sums_) {
    sums_->put(s, at(step.dst), addends_of(step));
    return summing_.add(s);
  }
  if (step.kind == Kind::copy)
    std::memmove(at(step.dst), addends_of(step)[0], static_cast<std::size_t>(step.count * size_of(plan_.dtype)));
  else
    reduce(plan_.op, plan_.dtype, at(step.dst), addends_of(step), step.count);
  end(s);
}

bool MessageOperation::end_summed() {
  bool any = false;
  for (; summing_.any() && sums_->over(summing_.first()); any = true) end(summing_.take());
  return any;
}

void MessageOperation::end(int s) {
  ++moved_;
  --steps_left_;
  release(flat(s).over);
}

std::span<const void* const> MessageOperation::addends_of(const FlatStep& step) {
  const auto count = static_cast<std::size_t>(step.addends.last - step.addends.first);
  for (std::size_t i = 0; i < count; ++i) addends_[i] = at(plan_.spots[static_cast<std::size_t>(step.addends.first) + i]);
  return {addends_.data(), count};
}

}  // namespace chorale
