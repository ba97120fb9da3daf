// Learns which copies between memory and a slow tier a program would make if its tensors had storage.
#pragma once
#include <cstdint>

namespace chorale {

class CopyMeter {
 public:
  virtual ~CopyMeter() = default;
  // Called for a copy that starts when all earlier work is done. Returns the copy's number; negative: copies are not
  // recorded.
  virtual int copies(std::int64_t bytes, bool into_memory) = 0;
  virtual void waits_for_copy(int number) = 0;
};

}  // namespace chorale
