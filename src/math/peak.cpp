#include "src/math/peak.hpp"

#include <algorithm>

#include "src/base/clock.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {
namespace {

// A GPU that multiplies zeros is faster than it will be.
Tensor filled(Allocator& allocator, std::int64_t side, DType dtype) {
  const Tensor tensor(allocator, {side, side}, dtype, Category::workspace);
  visit_floating(dtype, [&]<class T>(Type<T>) {
    with_values<T>(tensor, Use::write, [](std::span<T> values) {
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<T>(static_cast<float>(i * 2654435761u % 1024) / 512.0f - 1.0f);
    });
  });
  return tensor;
}

}  // namespace

double measured_product_peak(DType dtype, Memory& memory, const DevicePlugin* device, int threads) {
  constexpr double patience = 0.02, enough = 0.25;  // seconds: a product for which no larger one is tried; of a size
  Ledger ledger;
  Allocator allocator(memory, ledger);
  const SystemClock clock;
  const Queue queue = queue_on(device, threads);
  const std::unique_ptr<Numerics> numerics = numerics_on(device, "fast");
  double rate = 0;
  for (std::int64_t side = 256; side <= (device ? 8192 : 1024); side *= 2) {
    const Tensor x = filled(allocator, side, dtype), w = filled(allocator, side, dtype), y = filled(allocator, side, dtype);
    const auto seconds = [&] {
      const double before = clock.seconds();
      numerics->product(x, w, false, nullptr, y, queue);
      if (device) queue.device->wait(queue);
      return clock.seconds() - before;
    };
    double best = seconds();  // it makes the product ready as well
    for (const double end = clock.seconds() + enough; best < patience && clock.seconds() < end;)
      best = std::min(best, seconds());
    rate = std::max(rate, 2.0 * static_cast<double>(side * side * side) / best);
    if (best >= patience) break;
  }
  return rate;
}

}  // namespace chorale
