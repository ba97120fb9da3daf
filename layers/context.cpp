#include "layers/context.hpp"

#include <algorithm>
#include <bit>

namespace chorale {

Leaves Context::leaves_of(std::int64_t sequence) {
  const auto most = static_cast<std::uint64_t>(std::clamp<std::int64_t>(sequence / 8, 1, 256));
  return {static_cast<std::int64_t>(std::bit_floor(most)), sequence};
}

}  // namespace chorale
