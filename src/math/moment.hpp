// Moments in the work of a queue, for what its parts take. The host is past a moment when it asks for it; a device passes it when all that was
// asked of it before is done, and nobody waits for that: its seconds are read when the host has waited for a later one anyway.
//
//   const Moment begun = moment_on(queue, clock);   …   const Moment last = moment_on(queue, clock);
//   …                                                        a wait for what was asked before `last`
//   const PassedMoment known{last, clock.seconds()};
//   known.seconds(begun);                                    by the host's clock
#pragma once
#include <memory>

#include "src/base/clock.hpp"
#include "src/math/queue.hpp"

namespace chorale {

struct Moment {
  double host = 0;  // when it was asked for
  const DeviceKernels* device = nullptr;
  std::shared_ptr<void> mark;  // in the stream of that device
};
Moment moment_on(const Queue& queue, const Clock& clock);

struct PassedMoment {
  Moment moment;
  double at = 0;
  double seconds(const Moment& other) const;  // of one that is passed too
};

}  // namespace chorale
