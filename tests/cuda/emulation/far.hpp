// The emulated device's memory. The host can access it only while a kernel or a copy runs; any other access is a fault
// that ends the program. EMULATED_OPEN in the environment leaves it open, for libraries that access a device themselves.
#pragma once
#include <cstddef>

namespace emulation {

void* take(std::size_t bytes);  // aligned to 256, poisoned; null if out of memory
void give_back(void* place);
bool is_far(const void* place);
std::size_t total_bytes();  // 4 GiB, or EMULATED_BYTES
std::size_t free_bytes();   // minus EMULATED_BYTES_OF_OTHERS, which appear as soon as something was allocated here

// The memory is open to this process while an Open lives.
class Open {
 public:
  Open();
  ~Open();
  Open(const Open&) = delete;
};

}  // namespace emulation
