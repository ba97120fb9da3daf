// The engine for processors with AVX512_BF16. One instruction multiplies 32 pairs of bf16 values and adds the products to 16
// sums. On AMD, this instruction takes as long as one FMA of 16 floats, so products are twice as fast as in f32. On Intel,
// this instruction takes about 3 times as long as an FMA.
//
// Each element of c is one chain over k, with a rounding after each addition. In each word, the product of the upper halves
// is added first.
//
//   panel          b[k] ─────────► two registers       each step of k: 2 loads, 8 broadcasts, 16 independent instructions
//            a[0][k]  c[0]  ░░░░░░░░ ░░░░░░░░          (16 rows and one register where only 16 columns are left)
//               ⋮      ⋮
#pragma once
#include <immintrin.h>

#include "src/math/bf16/products.hpp"

namespace chorale::bf16_products {

// The program also runs on processors without these instructions, so only the functions that use these instructions are
// compiled for them.
struct Vectors {
  struct Session {};

  template <int height, int width, bool adds>
  [[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] static inline void panel(std::int64_t depth, Words a, Words b,
                                                                                   Matrix<float> c) {
    __m512 sum[height][width];
#pragma GCC unroll 16
    for (int i = 0; i < height; ++i)
#pragma GCC unroll 2
      for (int j = 0; j < width; ++j) sum[i][j] = adds ? _mm512_loadu_ps(c.at + i * c.row + j * 16) : _mm512_setzero_ps();
    for (std::int64_t k = 0; k < depth; ++k) {
      __m512bh right[width];
#pragma GCC unroll 2
      for (int j = 0; j < width; ++j) right[j] = (__m512bh)_mm512_loadu_si512(b.at + k * b.row + j * 16);
#pragma GCC unroll 16
      for (int i = 0; i < height; ++i) {
        const auto left = (__m512bh)_mm512_set1_epi32(static_cast<int>(a.at[i * a.row + k]));
#pragma GCC unroll 2
        for (int j = 0; j < width; ++j) sum[i][j] = _mm512_dpbf16_ps(sum[i][j], left, right[j]);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < height; ++i)
#pragma GCC unroll 2
      for (int j = 0; j < width; ++j) _mm512_storeu_ps(c.at + i * c.row + j * 16, sum[i][j]);
  }

  template <bool adds>
  [[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] static void product(std::int64_t rows, std::int64_t columns,
                                                                              std::int64_t depth, Words a, Words b,
                                                                              Matrix<float> c) {
    const auto at = [&](std::int64_t i, std::int64_t j) { return Matrix<float>{c.at + i * c.row + j, c.row}; };
    std::int64_t j = 0;
    for (; j + 32 <= columns; j += 32)
      for (std::int64_t i = 0; i < rows; i += 8)
        panel<8, 2, adds>(depth, {a.at + i * a.row, a.row}, {b.at + j, b.row}, at(i, j));
    if (j < columns)
      for (std::int64_t i = 0; i < rows; i += 16)
        panel<16, 1, adds>(depth, {a.at + i * a.row, a.row}, {b.at + j, b.row}, at(i, j));
  }

  [[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] static void round_rows(Matrix<const float> from, std::int64_t rows,
                                                                                 std::int64_t columns, Matrix<Word> to) {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < columns; j += 16)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.at + r * to.row + j / 2),
                            (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(from.at + r * from.row + j)));
  }

  [[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] static void round_pairs(Matrix<const float> from,
                                                                                  std::int64_t rows, std::int64_t columns,
                                                                                  Matrix<Word> to) {
    alignas(64) static constexpr std::uint16_t interleaved[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                                  21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                                  11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i order = _mm512_load_si512(interleaved);
    for (std::int64_t r = 0; r < rows; r += 2)
      for (std::int64_t j = 0; j < columns; j += 16) {
        const float* const even = from.at + r * from.row + j;
        const auto both = (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(even + from.row), _mm512_loadu_ps(even));
        _mm512_storeu_si512(to.at + r / 2 * to.row + j, _mm512_permutexvar_epi16(order, both));
      }
  }
};

}  // namespace chorale::bf16_products
