#include "src/math/moment.hpp"

#include "src/math/device_kernels.hpp"

namespace chorale {

Moment moment_on(const Queue& queue, const Clock& clock) {
  return {clock.seconds(), queue.device, queue.device ? queue.device->mark(queue) : nullptr};
}

double PassedMoment::seconds(const Moment& other) const {
  if (!other.device) return other.host;
  return at - other.device->seconds_between(other.mark.get(), moment.mark.get());
}

}  // namespace chorale
