// Copies with non-temporal stores, which bypass the caches. The destination is neither read first nor cached. Such a copy is
// a third faster than memcpy for data larger than the last-level cache, and several times slower for smaller data.
// Non-temporal stores need AVX; in a build without AVX, this function calls memcpy.
#pragma once
#include <cstdint>

namespace chorale {

void stream(void* to, const void* from, std::int64_t bytes);

}  // namespace chorale
