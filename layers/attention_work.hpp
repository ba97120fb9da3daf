// The attention work of one rank, so that ranks that split sequences can be compared. AttentionWork counts the pairs of a
// query and a key to which the query attends. AttentionWork also measures the processor time of the thread that calls the
// kernels. For kernels on a device, neither is recorded.
#pragma once
#include "src/base/thread_time.hpp"

namespace chorale {

struct AttentionWork {
  double pairs = 0;    // pairs per head and layer, summed over all micro-batches so far
  double seconds = 0;  // processor time of all forward and backward passes
};

// Adds the processor time that the calling thread spends in its scope.
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
