// GELU in its tanh form and SwiGLU, and their derivatives:
//
//   gelu     t = tanh u, u = √(2/π)·(x + 0.044715 x³)     dx = dy·((1 + t)/2 + x/2·(1 − t²)·u′)
//   swiglu   s = sigmoid(gate)     dup = dy·gate·s        dgate = dy·up·s·(1 + gate·(1 − s))
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

namespace chorale::reference {

template <class T>
void gelu_forward(const T* x, T* y, std::int64_t count) {
  const T slope = std::sqrt(2 / std::numbers::pi_v<T>), cubic = static_cast<T>(0.044715);
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] / 2 * (1 + std::tanh(slope * (x[i] + cubic * x[i] * x[i] * x[i])));
}

template <class T>
void gelu_backward(const T* dy, const T* x, T* dx, std::int64_t count) {
  const T slope = std::sqrt(2 / std::numbers::pi_v<T>), cubic = static_cast<T>(0.044715);
  for (std::int64_t i = 0; i < count; ++i) {
    const T t = std::tanh(slope * (x[i] + cubic * x[i] * x[i] * x[i]));
    dx[i] = dy[i] * ((1 + t) / 2 + x[i] / 2 * (1 - t * t) * slope * (1 + 3 * cubic * x[i] * x[i]));
  }
}

// The array `x` holds `count` pairs of blocks. A pair is a block of gates, followed by a block of ups.
template <class T>
void swiglu_forward(const T* x, std::int64_t block, T* y, std::int64_t count) {
  for (std::int64_t b = 0; b < count; ++b)
    for (std::int64_t i = 0; i < block; ++i) {
      const T gate = x[2 * b * block + i], up = x[(2 * b + 1) * block + i];
      y[b * block + i] = gate / (1 + std::exp(-gate)) * up;
    }
}

template <class T>
void swiglu_backward(const T* dy, const T* x, std::int64_t block, T* dx, std::int64_t count) {
  for (std::int64_t b = 0; b < count; ++b)
    for (std::int64_t i = 0; i < block; ++i) {
      const T gate = x[2 * b * block + i], up = x[(2 * b + 1) * block + i];
      const T s = 1 / (1 + std::exp(-gate)), d = dy[b * block + i];
      dx[2 * b * block + i] = d * up * s * (1 + gate * (1 - s));
      dx[(2 * b + 1) * block + i] = d * gate * s;
    }
}

}  // namespace chorale::reference
