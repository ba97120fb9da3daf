#include "collectives/problem.hpp"

#include "src/base/error.hpp"

namespace chorale {

Blocks Blocks::even(std::int64_t count, int size) {
  require(count >= 0 && size > 0, "{} elements cannot be cut into {} blocks", count, size);
  std::vector<std::int64_t> counts;
  for (int b = 0; b < size; ++b) counts.push_back(count / size + (b < count % size ? 1 : 0));
  return Blocks(counts);
}

Blocks::Blocks(const std::vector<std::int64_t>& counts) {
  for (const std::int64_t count : counts) {
    require(count >= 0, "a block cannot have {} elements", count);
    starts_.push_back(starts_.back() + count);
  }
}

std::int64_t Problem::input_count() const {
  if (what == Collective::all_gather) return blocks.count(rank);
  return what == Collective::broadcast && rank != root ? 0 : blocks.total();
}

std::int64_t Problem::output_count() const {
  if (what == Collective::reduce_scatter) return blocks.count(rank);
  return what == Collective::reduce && rank != root ? 0 : blocks.total();
}

}  // namespace chorale
