#include "src/math/cast.hpp"

#include <array>

#include "src/math/device_kernels.hpp"
#include "src/math/kernel.hpp"

namespace chorale {

void add(const Slice& from, const Slice& to, const Queue& queue) {
  require(from.count == to.count && from.dtype == to.dtype, "{} elements of {} cannot be added to {} elements of {}",
          from.count, name_of(from.dtype), to.count, name_of(to.dtype));
  const Kernel kernel(queue, "sum of two", Kernel::on_bytes(3 * static_cast<double>(to.bytes())), !to.data);
  if (kernel.skips()) return;
  const std::array<const void*, 2> both{to.data, from.data};
  if (queue.device) return queue.device->reduce(Redop::sum, to.dtype, to.data, both, to.count, queue);
  reduce(Redop::sum, to.dtype, to.data, both, to.count);
}

void cast(const Slice& from, const Slice& to, const Queue& queue) {
  require(from.count == to.count, "{} elements cannot be cast to {} elements", from.count, to.count);
  const Kernel kernel(queue, "cast", Kernel::on_bytes(static_cast<double>(from.bytes() + to.bytes())),
                      !from.data || !to.data);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->cast(from, to, queue);
  visit_floating(from.dtype, [&]<class From>(Type<From>) {
    visit_floating(to.dtype, [&]<class To>(Type<To>) {
      const auto* in = static_cast<const From*>(from.data);
      auto* out = static_cast<To*>(to.data);
      parallel_for(queue.threads, to.count,
                   [&](std::int64_t first, std::int64_t last) { convert(in + first, out + first, last - first); });
    });
  });
}

}  // namespace chorale
