// Starts libraries that crash without memory only if some memory is available. Under an address-space or data limit (ulimit
// -v, -d), libhdf5, oneDNN and UCX end in a segmentation fault that explains nothing. The check costs two system calls and
// touches no page.
#pragma once
#include <cstdint>

namespace chorale {

// Throws unless 32 MiB can be mapped now. `library` is its name in the error.
void require_spare_memory(const char* library);

// Bytes that this process may still map under its address-space limit; −1: there is no limit.
std::int64_t free_addresses();

}  // namespace chorale
