// Copies with non-temporal stores, past the caches: the destination is neither read first nor cached.
// A third faster than memcpy for data larger than the last-level cache; several times slower below that.
#pragma once
#include <cstdint>

namespace chorale {

void stream(void* to, const void* from, std::int64_t bytes);

}  // namespace chorale
