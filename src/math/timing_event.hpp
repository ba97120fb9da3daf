// Timestamps between the kernels of a queue. On the host, a TimingEvent is a clock reading. On a device, a TimingEvent is an
// event in the stream, and the host does not wait for this event. The time of the event is read later, when the host has
// already waited for a subsequent event.
//
//   const TimingEvent begun = record_event(queue, clock);   …   const TimingEvent last = record_event(queue, clock);
//   …                                                        the host waits for the work before `last`
//   const CompletedEvent known{last, clock.seconds()};
//   known.seconds(begun);                                    on the host's clock
#pragma once
#include <memory>

#include <chorale/clock.hpp>
#include "src/math/queue.hpp"

namespace chorale {

struct TimingEvent {
  double host = 0;  // on the host: the time at which the event was recorded
  const DeviceKernels* device = nullptr;
  std::shared_ptr<void> mark;  // on a device: the event that was recorded in the stream
};
TimingEvent record_event(const Queue& queue, const Clock& clock);

struct CompletedEvent {
  TimingEvent event;
  double at = 0;                                   // the time at which the event completed, on the host's clock
  double seconds(const TimingEvent& other) const;  // returns the time of another completed event, on the host's clock
};

}  // namespace chorale
