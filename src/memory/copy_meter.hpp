// Records the copies that a run would make between memory and a slow tier. Used in plans (dry runs), in which tensors have
// no storage.
#pragma once
#include <cstdint>

namespace chorale {

class CopyMeter {
 public:
  virtual ~CopyMeter() = default;
  // Called for a copy that starts after all earlier work is done. Returns the number of the copy. A negative number means
  // that copies are not recorded.
  virtual int copies(std::int64_t bytes, bool into_memory) = 0;
  virtual void waits_for_copy(int number) = 0;
};

}  // namespace chorale
