// The emulated device's memory. The host can access this memory only while a kernel or a copy runs. Any other access is a
// fault that ends the program. If EMULATED_OPEN is set in the environment, the host can always access the memory. Tests of
// CUDA-aware libraries need this, because such libraries access device memory themselves.
#pragma once
#include <cstddef>

namespace emulation {

void* take(std::size_t bytes);  // returns memory that is aligned to 256 bytes and filled with NaN; null if out of memory
void give_back(void* place);
bool is_far(const void* place);
std::size_t total_bytes();  // 4 GiB, or EMULATED_BYTES
std::size_t free_bytes();   // smaller by EMULATED_BYTES_OF_OTHERS once this process has allocated memory

// The host can access the memory as long as an object of this class exists.
class Open {
 public:
  Open();
  ~Open();
  Open(const Open&) = delete;
};

}  // namespace emulation
