// Records the attention work of one rank, to compare the load of ranks that split sequences. AttentionWork counts the
// (query, key) pairs in which the query attends to the key. AttentionWork also holds the processor time of the thread that
// calls the kernels. If the kernels run on a device, AttentionWork records neither pairs nor time.
#pragma once
#include "src/base/thread_time.hpp"

namespace chorale {

struct AttentionWork {
  double pairs = 0;    // number of (query, key) pairs per head and layer, summed over all micro-batches so far
  double seconds = 0;  // processor time of all forward and backward passes
};

// Adds the processor time that the calling thread spends in the scope of this object.
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
