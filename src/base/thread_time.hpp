// The processor time of this thread. The processor time of a thread is hardly affected by other programs, even if they use
// the same core.
#pragma once
#include <ctime>

namespace chorale {

inline double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace chorale
