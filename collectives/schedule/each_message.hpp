// The messages of a schedule, for counting.
#pragma once
#include <chorale/schedule.hpp>

namespace chorale {

// Calls visit(peer, elements) for each message that the schedule sends.
template <class Visit>
void each_message(const Schedule& schedule, const Visit& visit) {
  for (const Step& step : schedule.steps)
    if (step.kind == Kind::send)
      for (const int peer : step.peers) visit(peer, step.src[0].count);
}

}  // namespace chorale
