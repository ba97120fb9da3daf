#include "src/math/heads.hpp"

#include <cstring>

#include "src/math/device_kernels.hpp"
#include "src/math/kernel.hpp"

namespace chorale {

void copy_heads(const Tensor& x, const SomeHeads& heads, const Tensor& rows, bool back, const Queue& queue) {
  const std::int64_t units = x.dim(0) * heads.units;
  require(heads.first >= 0 && heads.first + heads.count <= heads.heads && x.count() == units * heads.heads * heads.width &&
              rows.shape() == Shape{units * heads.count, heads.width} && rows.dtype() == x.dtype(),
          "heads {} to {} of {} in each of {} units of x {} are not the rows {}", heads.first, heads.first + heads.count - 1,
          heads.heads, heads.units, to_string(x.shape()), to_string(rows.shape()));
  const Kernel kernel(queue, "copy of heads", rows, rows);
  if (kernel.skips() || x.phantom()) return;  // only the chosen heads of x are accessed
  if (queue.device) return queue.device->copy_heads(x, heads, rows, back, queue);
  const std::int64_t head = heads.width * size_of(x.dtype()), chosen = heads.count * head, whole = heads.heads * head;
  auto* const in_x = static_cast<std::byte*>(x.slice().data) + heads.first * head;
  auto* const in_rows = static_cast<std::byte*>(rows.slice().data);
  parallel_for(queue.threads, units, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      std::byte *there = in_x + unit * whole, *here = in_rows + unit * chosen;
      std::memcpy(back ? there : here, back ? here : there, static_cast<std::size_t>(chosen));
    }
  });
}

}  // namespace chorale
