#include "layers/context.hpp"

#include <algorithm>

namespace chorale {

std::int64_t Context::leaf_of(std::int64_t sequence) {
  for (std::int64_t leaf = std::min<std::int64_t>(sequence, 256); leaf > 1; --leaf)
    if (sequence % leaf == 0) return leaf;
  return 1;
}

}  // namespace chorale
