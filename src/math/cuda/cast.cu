// Casts on a device, bit-identical to the host's casts. The kernel is memory-bound: f32 to bf16 reads and writes 6 bytes per
// element, which takes 1.3 ms for 10⁹ elements at 4.8 TB/s.
#include "src/math/cast.hpp"

#include "src/math/cuda/kernels.cuh"
#include "src/math/cuda/map.cuh"
#include "src/math/cuda/numbers.cuh"

namespace chorale::cuda {
namespace {

template <class From, class To>
struct Converted {
  __device__ To operator()(std::int64_t, From value) const {
    if constexpr (std::is_same_v<From, double> && sizeof(To) == 2)
      return narrow(to_odd(value), Type<To>{});
    else if constexpr (sizeof(To) == 2)
      return narrow(widened(value), Type<To>{});
    else
      return static_cast<To>(widened(value));
  }
};

}  // namespace

void cast(const Slice& from, const Slice& to, const Queue& queue) {
  visit_floating(from.dtype, [&]<class From>(Type<From>) {
    visit_floating(to.dtype, [&]<class To>(Type<To>) {
      map(queue, Converted<From, To>{}, to.count, data<To>(to), static_cast<const From*>(data<From>(from)));
    });
  });
}

}  // namespace chorale::cuda
