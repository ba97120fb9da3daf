// The loop of the guard process (guard.hpp). The loop looks at the ranks ten times a second. The guard declares at most once
// that the run cannot go on.
#pragma once
#include <string>

#include <chorale/clock.hpp>
#include "src/base/descriptor.hpp"
#include "src/base/guard/leftovers.hpp"

namespace chorale {

struct WatchmansJob {
  int ranks = 1, ranks_on_host = 0;  // 0: unknown
  std::string after_request;         // the launcher's action on ranks that were asked to end, in words
  Leftovers leftovers;
  std::string supervisor = "";  // an invitation (other_guards.hpp) of the supervisor that started this run; "": none
};

// Returns after the last rank of the host has ended.
void watch(Descriptor listening, WatchmansJob job, Clock& clock);

}  // namespace chorale
