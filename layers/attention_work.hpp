// The attention work of one rank, to compare ranks that split sequences. It counts pairs of a query and a key that the query
// sees, and measures the processor time of the thread that calls the kernels. On a device neither is measured.
#pragma once
#include "src/base/thread_time.hpp"

namespace chorale {

struct AttentionWork {
  double pairs = 0;    // pairs per head and layer, in all micro-batches opened so far
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
