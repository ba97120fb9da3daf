#include "src/math/activation.hpp"

#include <algorithm>
#include <bit>
#include <numbers>
#include <vector>

#include "src/math/device_kernels.hpp"
#include "src/math/kernel.hpp"
#include "src/math/reference/activation.hpp"
#include "src/math/vector_math.hpp"

namespace chorale {
namespace {

// (1 + tanh u)/2 = sigmoid(2u). This form needs one exp and has no cancellation for negative x. x is clamped to ±30, where
// the sigmoid is 0 or 1 and x³ is finite.
constexpr float slope = 2 * std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>, cubic = 0.044715f;

[[gnu::always_inline]] inline float bounded(float x) { return x < -30.0f ? -30.0f : x > 30.0f ? 30.0f : x; }

[[gnu::always_inline]] inline float gelu(float x) {
  const float t = bounded(x);
  return x * math::sigmoid(slope * t * __builtin_fmaf(cubic * t, t, 1.0f));
}

[[gnu::always_inline]] inline float gelu_slope(float x) {
  const float t = bounded(x), share = math::sigmoid(slope * t * __builtin_fmaf(cubic * t, t, 1.0f));
  return __builtin_fmaf(t * share * (1.0f - share), slope * __builtin_fmaf(3 * cubic * t, t, 1.0f), share);
}

// Iteration i reads only element i of its inputs, and then writes element i of its output, so `dx` can be the same array as
// `dy`. The pragma `ivdep` tells GCC that the iterations are independent.
template <class T>
void gelu_values(const T* x, T* y, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<T>(gelu(static_cast<float>(x[i])));
}

// bf16 has only 65,536 values, so their results are stored in a table. A lookup takes half the time of the computation,
// because most inputs have one of a few thousand values, and the entries of these values stay in the L1 cache. The results
// are bit-identical to the results of the loops for other types.
template <class Entry, class Function>
std::vector<Entry> table_of(Function f) {
  std::vector<Entry> table(1 << 16);
  for (std::size_t bits = 0; bits < table.size(); ++bits)
    table[bits] = static_cast<Entry>(f(static_cast<float>(std::bit_cast<bf16>(static_cast<std::uint16_t>(bits)))));
  return table;
}

void gelu_values(const bf16* x, bf16* y, std::int64_t count) {
  static const std::vector<bf16> table = table_of<bf16>([](float value) { return gelu(value); });
  const bf16* const entries = table.data();
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < count; ++i) y[i] = entries[x[i].bits];
}

void gelu_gradients(const bf16* dy, const bf16* x, bf16* dx, std::int64_t count) {
  static const std::vector<float> table = table_of<float>([](float value) { return gelu_slope(value); });
  const float* const entries = table.data();
  constexpr std::int64_t piece = 256;  // elements per block; the slopes of a block stay in the L1 cache
  float slopes[piece];
  for (std::int64_t at = 0; at < count; at += piece, dy += piece, x += piece, dx += piece) {
    const std::int64_t here = std::min(piece, count - at);
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < here; ++i) slopes[i] = entries[x[i].bits];
#pragma GCC ivdep
    for (std::int64_t i = 0; i < here; ++i) dx[i] = static_cast<bf16>(static_cast<float>(dy[i]) * slopes[i]);
  }
}

template <class T>
void gelu_gradients(const T* dy, const T* x, T* dx, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i)
    dx[i] = static_cast<T>(static_cast<float>(dy[i]) * gelu_slope(static_cast<float>(x[i])));
}

template <class T>
void swiglu_values(const T* x, std::int64_t block, T* y, std::int64_t count) {
  for (std::int64_t b = 0; b < count; ++b, x += 2 * block, y += block) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < block; ++i) {
      const float gate = static_cast<float>(x[i]), up = static_cast<float>(x[block + i]);
      y[i] = static_cast<T>(gate * math::sigmoid(gate) * up);
    }
  }
}

template <class T>
void swiglu_gradients(const T* dy, const T* x, std::int64_t block, T* dx, std::int64_t count) {
  for (std::int64_t b = 0; b < count; ++b, x += 2 * block, dx += 2 * block, dy += block) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < block; ++i) {
      const float gate = static_cast<float>(x[i]), up = static_cast<float>(x[block + i]), d = static_cast<float>(dy[i]);
      const float share = math::sigmoid(gate);
      dx[i] = static_cast<T>(d * up * share * __builtin_fmaf(gate, 1.0f - share, 1.0f));
      dx[block + i] = static_cast<T>(d * gate * share);
    }
  }
}

void check_alike(const Tensor& a, const Tensor& b) {
  require(a.shape() == b.shape() && a.dtype() == b.dtype(),
          "gelu expects two tensors of the same shape and type, got {} of {} and {} of {}", to_string(a.shape()),
          name_of(a.dtype()), to_string(b.shape()), name_of(b.dtype()));
}

void check_halves(const Tensor& x, std::int64_t block, const Tensor& y) {
  require(
      block > 0 && y.count() % block == 0 && x.count() == 2 * y.count() && x.dim(0) == y.dim(0) && x.dtype() == y.dtype(),
      "swiglu with block {} cannot compute y {} of {} from x {} of {}: a row of x must be twice as long as a row of y",
      block, to_string(y.shape()), name_of(y.dtype()), to_string(x.shape()), name_of(x.dtype()));
}

}  // namespace

void gelu_forward(const Tensor& x, const Tensor& y, const Queue& queue) {
  check_alike(x, y);
  const Kernel kernel(queue, "GELU", x, y);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->gelu_forward(x, y, queue);
  visit_floating(x.dtype(), [&]<class T>(Type<T>) {
    const T* in = x.values<T>().data();
    T* out = y.values<T>().data();
    parallel_for(queue.threads, x.count(), [&](std::int64_t first, std::int64_t last) {
      if constexpr (std::same_as<T, double>)
        reference::gelu_forward(in + first, out + first, last - first);
      else
        gelu_values(in + first, out + first, last - first);
    });
  });
}

void gelu_backward(const Tensor& dy, const Tensor& x, const Tensor& dx, const Queue& queue) {
  check_alike(x, dx);
  check_alike(x, dy);
  const Kernel kernel(queue, "gradient of GELU", dy, x, dx);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->gelu_backward(dy, x, dx, queue);
  visit_floating(x.dtype(), [&]<class T>(Type<T>) {
    const T *above = dy.values<T>().data(), *in = x.values<T>().data();
    T* out = dx.values<T>().data();
    parallel_for(queue.threads, x.count(), [&](std::int64_t first, std::int64_t last) {
      if constexpr (std::same_as<T, double>)
        reference::gelu_backward(above + first, in + first, out + first, last - first);
      else
        gelu_gradients(above + first, in + first, out + first, last - first);
    });
  });
}

void swiglu_forward(const Tensor& x, std::int64_t block, const Tensor& y, const Queue& queue) {
  check_halves(x, block, y);
  const Kernel kernel(queue, "SwiGLU", x, y);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->swiglu_forward(x, block, y, queue);
  visit_floating(x.dtype(), [&]<class T>(Type<T>) {
    const T* in = x.values<T>().data();
    T* out = y.values<T>().data();
    parallel_for(queue.threads, y.count() / block, [&](std::int64_t first, std::int64_t last) {
      const std::int64_t at = first * block;
      if constexpr (std::same_as<T, double>)
        reference::swiglu_forward(in + 2 * at, block, out + at, last - first);
      else
        swiglu_values(in + 2 * at, block, out + at, last - first);
    });
  });
}

void swiglu_backward(const Tensor& dy, const Tensor& x, std::int64_t block, const Tensor& dx, const Queue& queue) {
  check_halves(x, block, dy);
  check_halves(dx, block, dy);
  const Kernel kernel(queue, "gradient of SwiGLU", dy, x, dx);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->swiglu_backward(dy, x, block, dx, queue);
  visit_floating(x.dtype(), [&]<class T>(Type<T>) {
    const T *above = dy.values<T>().data(), *in = x.values<T>().data();
    T* out = dx.values<T>().data();
    parallel_for(queue.threads, dy.count() / block, [&](std::int64_t first, std::int64_t last) {
      const std::int64_t at = first * block;
      if constexpr (std::same_as<T, double>)
        reference::swiglu_backward(above + at, in + 2 * at, block, out + 2 * at, last - first);
      else
        swiglu_gradients(above + at, in + 2 * at, block, out + 2 * at, last - first);
    });
  });
}

}  // namespace chorale
