#include "src/math/numerics.hpp"

namespace chorale {

void Numerics::add_outer_by_leaves(const Tensor& x, const Tensor& dy, std::span<const std::int64_t> leaves, const Tensor& dw,
                                   SumSite& site, const Queue& queue) {
  std::int64_t first = 0;
  for (const std::int64_t rows : leaves) {
    if (rows > 0) add_outer(x.narrow(first, rows), dy.narrow(first, rows), rows, dw, site, queue);
    first += rows;
  }
  require(first == x.dim(0), "leaves of {} rows do not divide {} rows", first, x.dim(0));
}

std::unique_ptr<Numerics> numerics_named(const std::string& name) {
  require(name == "fast" || name == "exact", "numerics must be fast or exact, not {}", name);
  return name == "exact" ? exact_numerics() : fast_numerics();
}

}  // namespace chorale
