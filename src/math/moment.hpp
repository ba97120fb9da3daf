// Timestamps in the work of a queue. On the host a Moment is a clock reading; on a device it is an event in the stream,
// and nobody waits for it. Its time is read once the host has waited for a later event anyway.
//
//   const Moment begun = moment_on(queue, clock);   …   const Moment last = moment_on(queue, clock);
//   …                                                        the host waits for the work before `last`
//   const PassedMoment known{last, clock.seconds()};
//   known.seconds(begun);                                    on the host's clock
#pragma once
#include <memory>

#include "src/base/clock.hpp"
#include "src/math/queue.hpp"

namespace chorale {

struct Moment {
  double host = 0;  // when it was recorded
  const DeviceKernels* device = nullptr;
  std::shared_ptr<void> mark;  // the event in that device's stream
};
Moment moment_on(const Queue& queue, const Clock& clock);

struct PassedMoment {
  Moment moment;
  double at = 0;
  double seconds(const Moment& other) const;  // of a moment that has also passed
};

}  // namespace chorale
