// AdamW, SGD and casts on a device, element by element with the host's roundings: the same bits.
//
// Memory-bound: adamw moves 28 bytes a parameter, sgd 20, a cast from f32 to bf16 6. For 10⁹ parameters at 4.8 TB/s: 5.8, 4.2 and 1.3 ms.
#include "src/math/optimizer_steps.hpp"

#include "src/math/cuda/kernels.cuh"
#include "src/math/cuda/map.cuh"
#include "src/math/cuda/numbers.cuh"

namespace chorale::cuda {
namespace {

// Sums in fixed point have 63 bits: their product is made in double, and rounded once more.
template <class W, class Gradient>
__device__ W scaled(Gradient gradient, double scale) {
  if constexpr (std::is_same_v<Gradient, float> && std::is_same_v<W, float>)
    return gradient * static_cast<float>(scale);
  else
    return static_cast<W>(static_cast<double>(gradient) * scale);
}

constexpr int threads = 256;

template <class W, class Gradient, int width>
__global__ void adamw_packs(AdamStep step, W* weights, W* moments1, W* moments2, const Gradient* gradient, double scale,
                            std::int64_t count) {
  const W beta1 = step.beta1, rest1 = 1 - step.beta1, beta2 = step.beta2, rest2 = 1 - step.beta2;
  const W correction1 = step.correction1, correction2 = step.correction2, epsilon = step.epsilon, rate = step.rate;
  const W decay = step.decay;
  const std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * width;
  if (at >= count) return;
  auto w = load<width>(weights + at), m = load<width>(moments1 + at), v = load<width>(moments2 + at);
#pragma unroll
  for (int i = 0; i < width; ++i) {
    const W g = scaled<W>(gradient[at + i], scale);
    m.values[i] = fused(beta1, m.values[i], rest1 * g);
    v.values[i] = fused(beta2, v.values[i], rest2 * g * g);
    const W direction = m.values[i] * correction1 / (root(v.values[i] * correction2) + epsilon);
    w.values[i] = fused(-rate, fused(decay, w.values[i], direction), w.values[i]);
  }
  store<width>(weights + at, w);
  store<width>(moments1 + at, m);
  store<width>(moments2 + at, v);
}

template <class W, class Gradient, int width>
__global__ void sgd_packs(SgdStep step, W* weights, W* moments, const Gradient* gradient, double scale, std::int64_t count) {
  const W momentum = step.momentum, rate = step.rate, decay = step.decay;
  const std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * width;
  if (at >= count) return;
  auto w = load<width>(weights + at), m = load<width>(moments + at);
#pragma unroll
  for (int i = 0; i < width; ++i) {
    const W g = scaled<W>(gradient[at + i], scale);
    m.values[i] = fused(momentum, m.values[i], fused(decay, w.values[i], g));
    w.values[i] = fused(-rate, m.values[i], w.values[i]);
  }
  store<width>(weights + at, w);
  store<width>(moments + at, m);
}

// Through a float whose last bit says whether anything was cut off: see the host's to_odd.
__device__ float to_odd(double value) {
  const auto near = static_cast<float>(value);
  const auto bits = std::bit_cast<std::uint32_t>(near);
  const bool grows = (near < value) == !(value < 0), turns = near != value && bits % 2 == 0;
  return std::bit_cast<float>(turns ? (grows ? bits + 1 : bits - 1) : bits);
}

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

// Calls f(weights' type, gradient's type, width): packs of 16 bytes of weights, where all is so aligned.
template <class F>
void with_step(const Slice& weights, const Slice& gradient, bool wide, F&& f) {
  with_gradient_type(gradient.dtype, [&]<class G>(Type<G> of_gradient) {
    const auto run = [&]<class W>(Type<W> of_weights) {
      with_packs(of_weights, wide && weights.count * sizeof(W) % 16 == 0,
                 [&](auto width) { f(of_weights, of_gradient, width); });
    };
    if (weights.dtype == DType::f64)
      run(Type<double>{});
    else
      run(Type<float>{});
  });
}

}  // namespace

void adamw(const AdamStep& step, const Slice& weights, const Slice& moment1, const Slice& moment2, const Slice& gradient,
           double scale, const Queue& queue) {
  const bool wide = aligned(weights.data, moment1.data, moment2.data);
  with_step(weights, gradient, wide, [&]<class W, class G>(Type<W>, Type<G>, auto width) {
    launch(adamw_packs<W, G, width()>, {quotient_up(weights.count, threads * width()), threads}, queue, step,
           data<W>(weights), data<W>(moment1), data<W>(moment2), data<G>(gradient), scale, weights.count);
  });
}

void sgd(const SgdStep& step, const Slice& weights, const Slice& moment, const Slice& gradient, double scale,
         const Queue& queue) {
  const bool wide = aligned(weights.data, moment.data);
  with_step(weights, gradient, wide, [&]<class W, class G>(Type<W>, Type<G>, auto width) {
    launch(sgd_packs<W, G, width()>, {quotient_up(weights.count, threads * width()), threads}, queue, step, data<W>(weights),
           data<W>(moment), data<G>(gradient), scale, weights.count);
  });
}

void cast(const Slice& from, const Slice& to, const Queue& queue) {
  visit_floating(from.dtype, [&]<class From>(Type<From>) {
    visit_floating(to.dtype, [&]<class To>(Type<To>) {
      map(queue, Converted<From, To>{}, to.count, data<To>(to), static_cast<const From*>(data<From>(from)));
    });
  });
}

}  // namespace chorale::cuda
