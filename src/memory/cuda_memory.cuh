// Memory on a CUDA device that gets its bytes from a DeviceLender instead of cudaMalloc. Internal to the CUDA plugin.
#pragma once
#include <memory>

#include "src/memory/memory.hpp"

namespace chorale {

class DeviceLender {
 public:
  virtual ~DeviceLender() = default;
  virtual void* take(std::int64_t bytes) = 0;  // allocates on the current device; on failure, returns nullptr and sets errno
  virtual void give_back(void* place, std::int64_t bytes) noexcept = 0;
};

std::unique_ptr<Memory> cuda_memory_of(DeviceLender& lender, int index);

}  // namespace chorale
