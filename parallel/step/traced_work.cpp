#include "parallel/step/traced_work.hpp"

#include <utility>

namespace chorale {

bool TracedWork::open(const Queue& queue, Trace::Inner inner) {
  open_.push_back(noted_.size());
  noted_.push_back({std::move(inner), queue, record_event(queue, clock_), {}});
  return true;
}

bool TracedWork::begin(const Queue& queue, std::string_view name, const KernelWork& work) {
  return trace_.on() && open(queue, {.kernel = true,
                                     .name = std::string(name),
                                     .bytes = work.bytes,
                                     .flops = flops_of(work),
                                     .m = work.m,
                                     .n = work.n,
                                     .k = work.k,
                                     .batch = work.batch});
}

bool TracedWork::enter(const Queue& queue, const std::string& layer) { return trace_.on() && open(queue, {.name = layer}); }

// Destructors call this function, so it must not throw. If the device has failed, the next call to the device reports the
// failure.
void TracedWork::end() {
  Noted& newest = noted_[open_.back()];
  open_.pop_back();
  try {
    newest.ends = record_event(newest.queue, clock_);
  } catch (const Error&) {
    newest.ends = newest.begins;
  }
}

void TracedWork::settle(const CompletedEvent& known) {
  std::vector<Noted> later;
  for (std::size_t i = 0; i < noted_.size(); ++i) {
    Noted& noted = noted_[i];
    if (i >= complete_ && noted.queue.device) {
      later.push_back(std::move(noted));
      continue;
    }
    noted.inner.begins = known.seconds(noted.begins);
    noted.inner.ends = known.seconds(noted.ends);
    trace_.add(std::move(noted.inner));
  }
  noted_ = std::move(later);
  complete_ = 0;
}

}  // namespace chorale
