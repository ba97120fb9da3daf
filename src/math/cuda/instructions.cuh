// Instructions that C++ cannot express: conversions, and tensor-core instructions for compute capability 8 and newer. Each
// function is one instruction. The tests implement the same functions in plain C++ (tests/cuda/emulation).
#pragma once
#include <cstdint>

#include <chorale/element.hpp>

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

// These functions return 2^x and 1/x, with an error of at most 2 ulp. Subnormal results become 0. Each function is one
// instruction, whereas exp and division take eight.
__device__ inline float two_to_the(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
__device__ inline float reciprocal(float x) {
  float share;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(share) : "f"(x));
  return share;
}

// Returns the greater value, or NaN if either value is NaN. 0 counts as greater than −0.
__device__ inline float greater_or_nan(float a, float b) {
  float greater;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(greater) : "f"(a), "f"(b));
  return greater;
}

// ── tensor cores: matrices of 16-bit elements, distributed over the lanes of a warp ──

// d[16,8] += a[16,16]·b[16,8]. Lane 4g + t holds these parts:
//
//   of a    the pairs along a row that start at (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8)
//   of b    the pairs along a column that start at (2t, g), (2t + 8, g)
//   of d    the elements (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
__device__ inline void multiply(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t* b, Type<bf16>) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline void multiply(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t* b, Type<f16>) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ inline unsigned shared_place(const void* place) { return static_cast<unsigned>(__cvta_generic_to_shared(place)); }

// Loads four 8×8 matrices from shared memory. Lane 8m + r passes the address of row r of matrix m. Lane 4g + t gets the pair
// that starts at (g, 2t) in each matrix.
__device__ inline void load_matrices(std::uint32_t (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(shared_place(row))
               : "memory");
}
// Loads the four matrices transposed: lane 4g + t gets (2t, g) and (2t + 1, g) of each matrix.
__device__ inline void load_turned(std::uint32_t (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(shared_place(row))
               : "memory");
}

// ── asynchronous copies into shared memory ──

// copy_pack_later copies 16 bytes, and copy_later copies one float. If `wanted` is false, they write zeros and read nothing.
__device__ inline void copy_pack_later(void* to, const void* from, bool wanted) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_place(to)), "l"(from), "r"(wanted ? 16 : 0)
               : "memory");
}
__device__ inline void copy_later(float* to, const float* from, bool wanted) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_place(to)), "l"(from), "r"(wanted ? 4 : 0)
               : "memory");
}
// Waits for all asynchronous copies that this thread has started.
__device__ inline void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace chorale::cuda
