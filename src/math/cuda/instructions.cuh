// What C++ does not say: conversions, and the tensor cores of compute capability 8 and newer. One function an instruction; the tests have
// this file a second time, in plain C++ (tests/cuda/emulation).
#pragma once
#include <cstdint>

#include "src/memory/dtype.hpp"

namespace chorale::cuda {

__device__ inline float widen(bf16 value) { return __uint_as_float(static_cast<unsigned>(value.bits) << 16); }
__device__ inline float widen(f16 value) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
}
__device__ inline bf16 narrow(float value, Type<bf16>) {
  bf16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
}
__device__ inline f16 narrow(float value, Type<f16>) {
  f16 result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
}

}  // namespace chorale::cuda
