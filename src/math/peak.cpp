#include "src/math/peak.hpp"

#include <algorithm>

#include "src/base/clock.hpp"
#include "src/math/products.hpp"

namespace chorale {

double measured_product_peak(DType dtype, int threads) {
  const std::int64_t side = dtype == DType::f64 ? 256 : 1024;  // f64 takes the plain reference, as slow for any size
  HostMemory memory;
  Ledger ledger;
  Allocator allocator(memory, ledger);
  const auto ones = [&] {
    const Tensor tensor(allocator, {side, side}, dtype, Category::workspace);
    visit_floating(dtype, [&]<class T>(Type<T>) { std::ranges::fill(tensor.values<T>(), static_cast<T>(1)); });
    return tensor;
  };
  const Tensor x = ones(), w = ones(), y = ones();
  const SystemClock clock;
  Products products;
  double best = 0;
  products.product(x, w, false, nullptr, y, {threads});  // makes it ready
  const double end = clock.seconds() + 0.25;
  for (double before = clock.seconds(), after = before; before < end; before = after) {
    products.product(x, w, false, nullptr, y, {threads});
    after = clock.seconds();
    best = std::max(best, 2.0 * static_cast<double>(side * side * side) / (after - before));
  }
  return best;
}

}  // namespace chorale
