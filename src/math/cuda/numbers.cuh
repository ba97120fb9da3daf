// Elements widened to what they are computed in, and rounded once: f32 for the types of 16 bits, else their own.
#pragma once
#include "src/math/cuda/instructions.cuh"
#include "src/math/kernel.hpp"

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

// Of the type they are given, by name for both.
__device__ inline float exponential(float x) { return expf(x); }
__device__ inline double exponential(double x) { return exp(x); }
__device__ inline float logarithm(float x) { return logf(x); }
__device__ inline double logarithm(double x) { return log(x); }
__device__ inline float root(float x) { return sqrtf(x); }
__device__ inline double root(double x) { return sqrt(x); }
__device__ inline float fused(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double fused(double a, double b, double c) { return fma(a, b, c); }

template <class W>
__device__ W sigmoid(W x) {
  return 1 / (1 + exponential(-x));
}

}  // namespace chorale::cuda
