// Checks that memory is available before the program starts a library that would crash otherwise. Under an address-space or
// data limit (ulimit -v, -d), libhdf5, oneDNN and UCX end with a segmentation fault that does not name the cause. The check
// costs two system calls and touches no page.
#pragma once
#include <cstdint>

namespace chorale {

// Throws unless 32 MiB can be mapped now. `library` is the name of the library in the error.
void require_spare_memory(const char* library);

// Returns the number of bytes that this process can still map under its address-space limit, or −1 if there is no limit.
std::int64_t free_addresses();

}  // namespace chorale
