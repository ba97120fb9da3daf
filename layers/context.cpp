#include "layers/context.hpp"

#include <algorithm>
#include <bit>

namespace chorale {

std::int64_t Context::leaf_of(std::int64_t sequence) {
  const auto most = static_cast<std::uint64_t>(std::clamp<std::int64_t>(sequence / 8, 1, 256));
  return static_cast<std::int64_t>(std::bit_floor(most));
}

}  // namespace chorale
