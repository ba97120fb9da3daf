// The inner f32 matrix product of the attention kernels and of the packed products (exact/chains.hpp). A panel computes a
// few rows of c that are a few vector registers wide. For attention, a panel has eight rows of one or two registers:
//
//   c[i][j] = fma(a[i][k], b[k][j], c[i][j])      k ascends, one chain of roundings for each element
//
//              b[k] ───────────► two registers
//        a[0][k]  c[0]  ░░░░░░░░ ░░░░░░░░         each step of k: 2 loads, 8 broadcasts, 16 independent FMAs, enough to
//           ⋮      ⋮                              hide their latency; c stays in registers
//        a[7][k]  c[7]  ░░░░░░░░ ░░░░░░░░
//
// Registers extend along j and never along k, so results do not depend on the vector width. The rate is about 230 GFLOP/s
// with AVX-512 at 3.7 GHz if a and b are in the L1 cache.
#pragma once
#include <cstdint>
#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace chorale::tile {

inline constexpr std::int64_t rows = 8;      // rows per product
inline constexpr std::int64_t columns = 16;  // the number of columns of b and c is a multiple of this number

#if defined(__AVX512F__)
inline constexpr int lanes = 16, registers = 2;
#elif defined(__AVX__)
inline constexpr int lanes = 8, registers = 1;
#else
inline constexpr int lanes = 4, registers = 1;
#endif
using Register [[gnu::vector_size(4 * lanes)]] = float;
using Unaligned [[gnu::vector_size(4 * lanes), gnu::aligned(4)]] = float;

// Element a[i][k] is at[i·row + k·step]. The strides are (row, 1) for a plain matrix and (1, row) for a transposed matrix.
struct Left {
  const float* at;
  std::int64_t row, step;
};
struct Right {
  const float* at;
  std::int64_t row;
};
struct Sum {
  float* at;
  std::int64_t row;
};

// Returns a·b + c. Uses intrinsics, because without them GCC 12 also uses FMA instructions but often keeps the sums in
// memory.
inline Register fused(float a, Register b, Register c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(_mm512_set1_ps(a), b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(_mm256_set1_ps(a), b, c);
#else
  for (int l = 0; l < lanes; ++l) c[l] = __builtin_fmaf(a, b[l], c[l]);
  return c;
#endif
}

template <int height, int width, bool adds>
inline void panel(std::int64_t depth, Left a, Right b, Sum c) {
  Register sum[height][width] = {};
  if constexpr (adds) {
#pragma GCC unroll 8
    for (int i = 0; i < height; ++i)
#pragma GCC unroll 8
      for (int j = 0; j < width; ++j) sum[i][j] = *reinterpret_cast<const Unaligned*>(c.at + i * c.row + j * lanes);
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    Register right[width];
#pragma GCC unroll 8
    for (int j = 0; j < width; ++j) right[j] = *reinterpret_cast<const Unaligned*>(b.at + k * b.row + j * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < height; ++i) {
      const float left = a.at[i * a.row + k * a.step];
#pragma GCC unroll 8
      for (int j = 0; j < width; ++j) sum[i][j] = fused(left, right[j], sum[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < height; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < width; ++j) *reinterpret_cast<Unaligned*>(c.at + i * c.row + j * lanes) = sum[i][j];
}

// Computes eight rows of c = a·b, or of c += a·b with `adds`.
template <bool adds>
void product(std::int64_t columns_of_c, std::int64_t depth, Left a, Right b, Sum c) {
  std::int64_t j = 0;
  for (; j + registers * lanes <= columns_of_c; j += registers * lanes)
    panel<rows, registers, adds>(depth, a, {b.at + j, b.row}, {c.at + j, c.row});
  if constexpr (registers > 1)
    for (; j < columns_of_c; j += lanes) panel<rows, 1, adds>(depth, a, {b.at + j, b.row}, {c.at + j, c.row});
}

}  // namespace chorale::tile
