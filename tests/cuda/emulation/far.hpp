// The emulated device's memory. The host can access it only while a kernel or a copy runs; any other access is a fault that
// ends the program. If EMULATED_OPEN is set in the environment, the host can always access the memory; this serves tests of
// CUDA-aware libraries, which access device memory themselves.
#pragma once
#include <cstddef>

namespace emulation {

void* take(std::size_t bytes);  // aligned to 256, poisoned; null if out of memory
void give_back(void* place);
bool is_far(const void* place);
std::size_t total_bytes();  // 4 GiB, or EMULATED_BYTES
std::size_t free_bytes();   // less EMULATED_BYTES_OF_OTHERS, which count only after this process has allocated something

// The host can access the memory as long as an Open exists.
class Open {
 public:
  Open();
  ~Open();
  Open(const Open&) = delete;
};

}  // namespace emulation
