// The emulated device's memory. The host can access this memory only while a kernel or a copy runs. Any other access is a
// fault that ends the program. If EMULATED_OPEN is set in the environment, the host can always access the memory. Tests of
// CUDA-aware libraries need this, because such libraries access device memory themselves.
#pragma once
#include <cstddef>

namespace emulation {

void* take(std::size_t bytes);  // aligned to 256, poisoned; null if out of memory
void give_back(void* place);
bool is_far(const void* place);
std::size_t total_bytes();  // 4 GiB, or EMULATED_BYTES
std::size_t free_bytes();   // after the first allocation of this process, EMULATED_BYTES_OF_OTHERS are subtracted

// The host can access the memory as long as an Open exists.
class Open {
 public:
  Open();
  ~Open();
  Open(const Open&) = delete;
};

}  // namespace emulation
