#include "src/math/kernel_timer.hpp"

namespace chorale {

bool KernelTable::begin(const Queue& queue, std::string_view name, const KernelWork& work) {
  if (queue.device) return false;
  open_.push_back({name, work, clock_.seconds()});
  return true;
}

void KernelTable::end() {
  const Open open = open_.back();
  open_.pop_back();
  const double whole = clock_.seconds() - open.began;
  if (!open_.empty()) open_.back().inside += whole;
  const KernelWork& work = open.work;
  Row& row = rows_[{open.name, work.m, work.n, work.k, work.batch}];
  ++row.calls;
  row.seconds += whole - open.inside;
  row.bytes += work.bytes;
  row.flops += flops_of(work);
}

void Kernel::begin(const Queue& queue, std::string_view name, const KernelWork& work) {
  if (nothing_) return queue.note(work);
  if (queue.timer->begin(queue, name, work)) timer_ = queue.timer;
}

}  // namespace chorale
