#include "parallel/mesh/script.hpp"

#include <algorithm>

#include "src/base/index.hpp"

namespace chorale {

void Script::note(const KernelWork& kernel) {
  if (with_copies_ && bucket_ && kernel.work == Work::update) {
    begin_copy(static_cast<std::int64_t>(kernel.bytes), Call::Copy::update);
    return;
  }
  since_[static_cast<std::size_t>(kernel.work)] += kernel.amount;
  kernels_.push_back(kernel);
}

int Script::copies(std::int64_t bytes, bool into_memory) {
  return with_copies_ ? begin_copy(bytes, into_memory ? Call::Copy::in : Call::Copy::out) : -1;
}

int Script::begin_copy(std::int64_t bytes, Call::Copy copy) {
  const int number = begin({.group = "host", .volume = {.vector = bytes}, .copy = copy, .of_update = bucket_.has_value()});
  if (bucket_) last_[*bucket_][copy] = number;
  return number;
}

void Script::waits_for_update(std::size_t bucket) {
  for (const auto& [copy, number] : last_[bucket]) wait(number);
  last_.erase(bucket);
}

void Script::begin_with_update() {
  std::ranges::stable_partition(
      acts_, [&](const Act& act) { return act.kind == Act::Kind::begin && calls_[index(act.call)].of_update; });
}

void Script::begins(const StepPart& part) {
  settle();
  acts_.push_back({.kind = Act::Kind::part, .part = part});
}

void Script::settle() {
  if (settled_ < kernels_.size())
    acts_.push_back({.kind = Act::Kind::work, .work = since_, .first_kernel = settled_, .last = kernels_.size()});
  since_ = {};
  settled_ = kernels_.size();
}

int Script::begin(const Call& call) {
  settle();
  const int number = static_cast<int>(calls_.size());
  calls_.push_back(call);
  acts_.push_back({.kind = Act::Kind::begin, .call = number});
  return number;
}

void Script::wait(int call) {
  settle();
  acts_.push_back({.kind = Act::Kind::wait, .call = call});
}

Amounts Script::total() const {
  Amounts sum = since_;
  for (const Act& act : acts_)
    for (std::size_t kind = 0; kind < kinds_of_work; ++kind) sum[kind] += act.work[kind];
  return sum;
}

}  // namespace chorale
