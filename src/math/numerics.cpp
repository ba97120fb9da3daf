#include "src/math/numerics.hpp"

#include <numeric>

namespace chorale {

void require_leaves(std::span<const std::int64_t> leaves, std::int64_t rows) {
  const std::int64_t sum = std::accumulate(leaves.begin(), leaves.end(), std::int64_t{0});
  require(sum == rows, "leaves of {} rows do not divide {} rows", sum, rows);
}

std::unique_ptr<Numerics> numerics_of(NumericsKind kind) {
  return kind == NumericsKind::exact ? exact_numerics() : fast_numerics();
}

}  // namespace chorale
