// GELU and SwiGLU on a device, by the formulas of src/math/activation.cpp. With these formulas, GELU needs only one
// exponential.
//
// The kernels are memory-bound. Per element of y, gelu accesses 2 elements, its gradient accesses 3, swiglu accesses 3, and
// the gradient of swiglu accesses 5. In bf16 at 4.8 TB/s, these kernels take 0.8, 1.25, 1.25 and 2.1 µs per million elements
// of y.
#include "src/math/activation.hpp"

#include <numbers>

#include "src/math/cuda/kernels.cuh"
#include "src/math/cuda/map.cuh"
#include "src/math/cuda/numbers.cuh"

namespace chorale::cuda {
namespace {

// (1 + tanh u)/2 = sigmoid(2u). x is clamped to ±30, where the sigmoid is 0 or 1 and x³ is finite. The constants are rounded
// as on the host; otherwise f32 results would differ in the last bit.
template <class W>
constexpr W slope = 2 * std::numbers::sqrt2_v<W>* std::numbers::inv_sqrtpi_v<W>;
template <class W>
constexpr W cubic = W(0.044715);

template <class W>
__device__ W bounded(W x) {
  return x < W(-30) ? W(-30) : x > W(30) ? W(30) : x;
}

template <class T>
struct Gelu {
  __device__ T operator()(std::int64_t, T of) const {
    using W = Statistic<T>;
    const W x = widened(of), t = bounded(x);
    return rounded<T>(x * sigmoid<T>(slope<W> * t * fused(cubic<W> * t, t, W(1))));
  }
};

template <class T>
struct GeluGradient {
  __device__ T operator()(std::int64_t, T dy, T of) const {
    using W = Statistic<T>;
    const W t = bounded(widened(of)), share = sigmoid<T>(slope<W> * t * fused(cubic<W> * t, t, W(1)));
    return rounded<T>(widened(dy) * fused(t * share * (1 - share), slope<W> * fused(3 * cubic<W> * t, t, W(1)), share));
  }
};

// A thread processes one pack (16-byte vector) of gates and the matching pack of ups, which is `block` elements later.
template <class T, int width>
__global__ void swiglu_packs(const T* x, std::int64_t block, T* y, std::int64_t count) {
  using W = Statistic<T>;
  const std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * width;
  if (at >= count) return;
  const T* gates = x + at + at / block * block;
  const auto gate = load<width>(gates), up = load<width>(gates + block);
  Pack<T, width> result;
#pragma unroll
  for (int i = 0; i < width; ++i) {
    const W g = widened(gate.values[i]);
    result.values[i] = rounded<T>(g * sigmoid<T>(g) * widened(up.values[i]));
  }
  store<width>(y + at, result);
}

// `dups` is `dgates` plus one block, but is passed as a separate pointer. With a single pointer, nvcc 13 splits the second
// 16-byte store into word-sized stores.
template <class T, int width>
__global__ void swiglu_gradient_packs(const T* dy, const T* x, std::int64_t block, T* dgates, T* dups, std::int64_t count) {
  using W = Statistic<T>;
  const std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * width;
  if (at >= count) return;
  const std::int64_t gates = at + at / block * block;
  const auto above = load<width>(dy + at), gate = load<width>(x + gates), up = load<width>(x + gates + block);
  Pack<T, width> of_gate, of_up;
#pragma unroll
  for (int i = 0; i < width; ++i) {
    const W g = widened(gate.values[i]), u = widened(up.values[i]), d = widened(above.values[i]), share = sigmoid<T>(g);
    of_gate.values[i] = rounded<T>(d * u * share * fused(g, 1 - share, W(1)));
    of_up.values[i] = rounded<T>(d * g * share);
  }
  store<width>(dgates + gates, of_gate);
  store<width>(dups + gates, of_up);
}

constexpr int threads = 256;

}  // namespace

void gelu_forward(const Tensor& x, const Tensor& y, const Queue& queue) {
  visit_floating(x.dtype(),
                 [&]<class T>(Type<T>) { map(queue, Gelu<T>{}, x.count(), data<T>(y), static_cast<const T*>(data<T>(x))); });
}

void gelu_backward(const Tensor& dy, const Tensor& x, const Tensor& dx, const Queue& queue) {
  visit_floating(x.dtype(), [&]<class T>(Type<T>) {
    map(queue, GeluGradient<T>{}, x.count(), data<T>(dx), static_cast<const T*>(data<T>(dy)),
        static_cast<const T*>(data<T>(x)));
  });
}

void swiglu_forward(const Tensor& x, std::int64_t block, const Tensor& y, const Queue& queue) {
  visit_floating(x.dtype(), [&]<class T>(Type<T>) {
    const T* in = data<T>(x);
    T* out = data<T>(y);
    with_packs(Type<T>{}, aligned(in, out) && block * sizeof(T) % 16 == 0, [&](auto width) {
      launch(swiglu_packs<T, width()>, {quotient_up(y.count(), threads * width()), threads}, queue, in, block, out,
             y.count());
    });
  });
}

void swiglu_backward(const Tensor& dy, const Tensor& x, std::int64_t block, const Tensor& dx, const Queue& queue) {
  visit_floating(x.dtype(), [&]<class T>(Type<T>) {
    const T *above = data<T>(dy), *in = data<T>(x);
    T* out = data<T>(dx);
    with_packs(Type<T>{}, aligned(above, in, out) && block * sizeof(T) % 16 == 0, [&](auto width) {
      launch(swiglu_gradient_packs<T, width()>, {quotient_up(dy.count(), threads * width()), threads}, queue, above, in,
             block, out, out + block, dy.count());
    });
  });
}

}  // namespace chorale::cuda
