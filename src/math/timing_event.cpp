#include "src/math/timing_event.hpp"

#include "src/math/device_kernels.hpp"

namespace chorale {

TimingEvent record_event(const Queue& queue, const Clock& clock) {
  return {clock.seconds(), queue.device, queue.device ? queue.device->mark(queue) : nullptr};
}

double CompletedEvent::seconds(const TimingEvent& other) const {
  if (!other.device) return other.host;
  return at - other.device->seconds_between(other.mark.get(), event.mark.get());
}

}  // namespace chorale
