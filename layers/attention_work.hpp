// The work of attention on one rank, to compare ranks that divide sequences: pairs of a query and a key that it sees, and
// the processor time of the first thread that computes them. Other programs do not change this time much, even if ranks
// share a core. On a device it is not measured.
#pragma once
#include <ctime>

namespace chorale {

struct AttentionWork {
  double pairs = 0;    // of the micro-batches opened so far, in one head and layer
  double seconds = 0;  // of all forward and backward passes
};

// Adds the time of its scope.
class AttentionTimer {
 public:
  explicit AttentionTimer(AttentionWork* work) : work_(work), begun_(work ? now() : 0) {}
  AttentionTimer(const AttentionTimer&) = delete;
  ~AttentionTimer() {
    if (work_) work_->seconds += now() - begun_;
  }

 private:
  static double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  AttentionWork* work_;
  double begun_;
};

}  // namespace chorale
