#include "parallel/forecast/script.hpp"

namespace chorale {

void Script::note(Work work, double amount) { since_[static_cast<std::size_t>(work)] += amount; }

void Script::settle() {
  if (since_ != Amounts{}) acts_.push_back({Act::Kind::work, since_});
  since_ = {};
}

int Script::begin(const Call& call) {
  settle();
  const int number = static_cast<int>(calls_.size());
  calls_.push_back(call);
  acts_.push_back({Act::Kind::begin, {}, number});
  return number;
}

void Script::wait(int call) {
  settle();
  acts_.push_back({Act::Kind::wait, {}, call});
}

Amounts Script::total() const {
  Amounts sum = since_;
  for (const Act& act : acts_)
    for (std::size_t kind = 0; kind < kinds_of_work; ++kind) sum[kind] += act.work[kind];
  return sum;
}

}  // namespace chorale
