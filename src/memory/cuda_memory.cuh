// Memory on a CUDA device whose bytes come from somewhere else than cudaMalloc. Within the plugin.
#pragma once
#include <memory>

#include "src/memory/memory.hpp"

namespace chorale {

class DeviceLender {
 public:
  virtual ~DeviceLender() = default;
  virtual void* take(std::int64_t bytes) = 0;  // of the current device; nullptr when refused, errno says why
  virtual void give_back(void* place, std::int64_t bytes) noexcept = 0;
};

std::unique_ptr<Memory> cuda_memory_of(DeviceLender& lender, int index);

}  // namespace chorale
