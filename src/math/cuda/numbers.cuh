// Widens elements to the type in which kernels compute (f32 for 16-bit types, otherwise the type itself), and rounds results
// once.
//
// f32 kernels use the host's own functions (vector_math.hpp), so a kernel that adds in the same order as the host gives
// bit-identical results. For 16-bit types, kernels use the GPU's instructions for 2^x and 1/x, which take a quarter of the
// work. The errors of these instructions are too small to survive the rounding to 16 bits.
#pragma once
#include <numbers>

#include "src/math/cuda/instructions.cuh"
#include "src/math/kernel.hpp"
#include "src/math/vector_math.hpp"

namespace chorale::cuda {

template <class T>
__device__ Statistic<T> widened(T value) {
  if constexpr (sizeof(T) == 2)
    return widen(value);
  else
    return value;
}

template <class T>
__device__ T rounded(Statistic<T> value) {
  if constexpr (sizeof(T) == 2)
    return narrow(value, Type<T>{});
  else
    return value;
}

// Returns e^x and 1/(1 + e^−x) in the type in which kernels compute on elements of type T.
template <class T>
__device__ Statistic<T> exponential(Statistic<T> x) {
  if constexpr (sizeof(T) == 2)
    return two_to_the(x * std::numbers::log2e_v<float>);
  else if constexpr (sizeof(T) == 4)
    return math::exp(x);
  else
    return exp(x);
}
template <class T>
__device__ Statistic<T> sigmoid(Statistic<T> x) {
  const Statistic<T> whole = 1 + exponential<T>(-x);
  if constexpr (sizeof(T) == 2)
    return reciprocal(whole);
  else
    return 1 / whole;
}

// Overloads that have the same name for float and double.
__device__ inline float logarithm(float x) { return math::log(x); }
__device__ inline double logarithm(double x) { return log(x); }
__device__ inline float root(float x) { return sqrtf(x); }
__device__ inline double root(double x) { return sqrt(x); }
__device__ inline float fused(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double fused(double a, double b, double c) { return fma(a, b, c); }

}  // namespace chorale::cuda
