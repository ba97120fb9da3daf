// Computes out[i] = f(i, in[i]…) for all elements, with 16 bytes of `out` per thread. The kernel is memory-bound if f takes
// fewer than about a dozen instructions for every two bytes of memory traffic.
#pragma once
#include "src/math/cuda/launch.cuh"
#include "src/math/cuda/pack.cuh"

namespace chorale::cuda {

template <int width, class F, class Out, class... Packs>
__device__ void map_pack(const F& f, std::int64_t first, Out* out, const Packs&... packs) {
  Pack<Out, width> results;
#pragma unroll
  for (int i = 0; i < width; ++i) results.values[i] = f(first + i, packs.values[i]...);
  store<width>(out + first, results);
}

// A thread reads its elements before it writes them and accesses no other elements, so `out` can be one of the inputs.
template <int width, class F, class Out, class... In>
__global__ void map_elements(F f, std::int64_t count, Out* out, const In*... in) {
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * width;
  if (first + width <= count)
    map_pack<width>(f, first, out, load<width>(in + first)...);
  else
    for (std::int64_t i = first; i < count; ++i) map_pack<1>(f, i, out, load<1>(in + i)...);
}

template <class F, class Out, class... In>
void map(const Queue& queue, F f, std::int64_t count, Out* out, const In*... in) {
  constexpr int threads = 256;
  with_packs(Type<Out>{}, aligned(out, in...), [&](auto width) {
    launch(map_elements<width(), F, Out, In...>, {quotient_up(count, threads * width()), threads}, queue, f, count, out,
           in...);
  });
}

}  // namespace chorale::cuda
