#include "parallel/mesh/script.hpp"

namespace chorale {

void Script::note(const KernelWork& kernel) {
  since_[static_cast<std::size_t>(kernel.work)] += kernel.amount;
  kernels_.push_back(kernel);
}

int Script::copies(std::int64_t bytes, bool into_memory) {
  if (!with_copies_) return -1;
  return begin({.group = "host", .volume = {.vector = bytes}, .copy = into_memory ? Call::Copy::in : Call::Copy::out});
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
