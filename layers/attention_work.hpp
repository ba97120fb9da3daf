// The work of attention on one rank, to compare ranks that divide sequences: pairs of a query and a key that it sees, and
// the processor time of the first thread that computes them. On a device it is not measured.
#pragma once
#include "src/base/thread_time.hpp"

namespace chorale {

struct AttentionWork {
  double pairs = 0;    // of the micro-batches opened so far, in one head and layer
  double seconds = 0;  // of all forward and backward passes
};

// Adds the time of its scope.
class AttentionTimer {
 public:
  explicit AttentionTimer(AttentionWork* work) : work_(work), begun_(work ? thread_seconds() : 0) {}
  AttentionTimer(const AttentionTimer&) = delete;
  ~AttentionTimer() {
    if (work_) work_->seconds += thread_seconds() - begun_;
  }

 private:
  AttentionWork* work_;
  double begun_;
};

}  // namespace chorale
