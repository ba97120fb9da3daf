// The processor time of this thread. Other programs change the processor time of a thread little, even if they share its
// core.
#pragma once
#include <ctime>

namespace chorale {

inline double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace chorale
