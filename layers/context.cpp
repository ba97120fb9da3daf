#include "layers/context.hpp"

#include <algorithm>
#include <bit>

#include "src/math/cast.hpp"

namespace chorale {

Tensor Context::zeros(Shape shape, DType dtype) {
  const Tensor made = typed(std::move(shape), dtype, Category::workspace);
  clear(made);
  return made;
}

Tensor Context::as(DType dtype, const Tensor& x, Category category) {
  if (x.dtype() == dtype) return x;
  const Tensor y = typed(x.shape(), dtype, category);
  cast(x.slice(), y.slice(), queue);
  return y;
}

Leaves Context::leaves_of(std::int64_t sequence) {
  const auto most = static_cast<std::uint64_t>(std::clamp<std::int64_t>(sequence / 8, 1, 256));
  return {static_cast<std::int64_t>(std::bit_floor(most)), sequence};
}

}  // namespace chorale
