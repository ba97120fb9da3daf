#include "src/math/kernel_timer.hpp"

namespace chorale {

void KernelTimer::end() {
  const Open open = open_.back();
  open_.pop_back();
  const double whole = clock_.seconds() - open.began;
  if (!open_.empty()) open_.back().inside += whole;
  const KernelWork& work = open.work;
  Row& row = rows_[{open.name, work.m, work.n, work.k, work.batch}];
  ++row.calls;
  row.seconds += whole - open.inside;
  row.bytes += work.bytes;
  if (work.work == Work::product || work.work == Work::attention) row.flops += work.amount;
}

// Kernels of a device have not ended when their function returns, so they have no time here.
void Kernel::begin(const Queue& queue, std::string_view name, const KernelWork& work) {
  if (nothing_) return queue.note(work);
  if (queue.device) return;
  timer_ = queue.timer;
  timer_->begin(name, work);
}

}  // namespace chorale
