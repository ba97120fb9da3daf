// Libraries that crash if they get no memory are asked to start only if some can be had. Under a limit of the address space
// or of a process's data (ulimit -v, -d), libhdf5, oneDNN and UCX end in a segmentation fault, and nobody learns why. The
// cost is two system calls, which touch no page.
#pragma once
#include <cstdint>

namespace chorale {

// Throws unless 32 MiB can be mapped now. `library` is the word in the error.
void require_spare_memory(const char* library);

// Bytes that this process may still map under its limit of the address space; −1: there is no limit.
std::int64_t free_addresses();

}  // namespace chorale
