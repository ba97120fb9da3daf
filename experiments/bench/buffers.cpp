#include "experiments/bench/buffers.hpp"

#include <algorithm>
#include <numeric>

#include "src/base/host.hpp"

namespace chorale::bench {

void Buffers::lend(std::int64_t bytes) {
  constexpr std::int64_t line = 128;  // two cache lines, because processors fetch cache lines in pairs
  stride_ = 2 * line * ((std::max<std::int64_t>(bytes, 1) + line - 1) / line);
  slots_ = cold_ ? std::max<std::int64_t>(3, 2 * last_level_cache_bytes() / stride_ + 1) : 1;
  step_ = std::max<std::int64_t>(slots_ * 618 / 1000, 1);
  while (std::gcd(step_, slots_) != 1) ++step_;
  if (memory_.bytes() >= slots_ * stride_) return;
  memory_ = {};  // frees the old memory before the new memory is allocated
  memory_ = allocator_.allocate(slots_ * stride_, Category::workspace);
  memory().clear(memory_.data(), memory_.bytes());
}

void* Buffers::place(std::int64_t call, std::int64_t offset) const {
  return static_cast<std::byte*>(memory_.data()) + call * step_ % slots_ * stride_ + offset;
}

}  // namespace chorale::bench
