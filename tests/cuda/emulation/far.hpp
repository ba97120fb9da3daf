// The emulated device's memory: the host cannot touch it, but while a kernel or a copy runs. Who reads a device's bytes with the host's
// hands is ended by the kernel, here as there. EMULATED_OPEN in the environment leaves it open, for libraries that reach a device themselves.
#pragma once
#include <cstddef>

namespace emulation {

void* take(std::size_t bytes);  // aligned to 256, poisoned; null where there is no more
void give_back(void* place);
bool is_far(const void* place);
std::size_t total_bytes();  // 4 GiB, or EMULATED_BYTES
std::size_t free_bytes();   // less EMULATED_BYTES_OF_OTHERS, which come as soon as something was taken here

// While one lives, the memory is open to this process.
class Open {
 public:
  Open();
  ~Open();
  Open(const Open&) = delete;
};

}  // namespace emulation
