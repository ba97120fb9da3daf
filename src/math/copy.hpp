// Copies past the caches: what is written is not read first and pushes nothing out. Worth it where the data are more than the last-level
// cache holds, a third faster there; below that it is several times slower than memcpy.
#pragma once
#include <cstdint>

namespace chorale {

void stream(void* to, const void* from, std::int64_t bytes);

}  // namespace chorale
