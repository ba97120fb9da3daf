// Packs a part of a matrix for the tiles of chains.hpp. A panel [length][width] holds `width` rows of a (or columns of b) in
// f32, ordered by k. 16-bit elements are widened during packing.
//
// If consecutive values of k are adjacent in the matrix, the panel is a transposed copy of the part. Squares of 8 × 8
// elements are transposed in registers, in three steps. Step 4 exchanges blocks of 4 × 4 elements. Step 2 exchanges the 2 ×
// 2 blocks inside each 4 × 4 block, and step 1 exchanges single elements:
//
//    A B        A C
//    C D   ──▶  B D
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#ifdef __F16C__
#include <immintrin.h>
#endif

#include "src/math/exact/kernels.hpp"

namespace chorale::exact {

// Vectors are passed by reference, because without AVX the compiler warns about passing them by value.
using Eight [[gnu::vector_size(32)]] = float;
using UnalignedEight [[gnu::vector_size(32), gnu::aligned(4)]] = float;

inline void load(Eight& eight, const float* from) { eight = *reinterpret_cast<const UnalignedEight*>(from); }

template <class Small>
void load(Eight& eight, const Small* from) {
  for (int l = 0; l < 8; ++l) eight[l] = static_cast<float>(from[l]);
}

#ifdef __F16C__  // GCC 12 does not vectorize f16::widen here
inline void load(Eight& eight, const f16* from) {
  eight = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
#endif

template <std::int64_t count, class T>
void widen(const T* from, float* to) {
  if constexpr (count % 8 == 0) {
    for (std::int64_t i = 0; i < count; i += 8) {
      Eight eight;
      load(eight, from + i);
      *reinterpret_cast<UnalignedEight*>(to + i) = eight;
    }
  } else if constexpr (std::is_same_v<T, float>) {
    std::memcpy(to, from, count * sizeof(float));  // GCC 12 would copy single elements in a loop
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
  }
}

// Swaps the blocks B and C of a step (see above) in two rows that are `step` rows apart.
template <int step>
void exchange(Eight& a, Eight& b) {
  [&]<int... l>(std::integer_sequence<int, l...>) {
    const Eight upper = __builtin_shufflevector(a, b, (l & step ? l - step + 8 : l)...);
    b = __builtin_shufflevector(a, b, (l & step ? l + 8 : l + step)...);
    a = upper;
  }
  (std::make_integer_sequence<int, 8>{});
}

template <int step>
void exchange_blocks(Eight (&square)[8]) {
#pragma GCC unroll 8
  for (int row = 0; row < 8; ++row)
    if (!(row & step)) exchange<step>(square[row], square[row + step]);
}

// Packs `count` rows of a (or columns of b) that start at `first`, and `length` values of k that start at `start`. `count`
// is at most `width`. The rest of the panel is zero.
template <std::int64_t width, class T>
void pack(const SideOf<T>& side, std::int64_t first, std::int64_t count, std::int64_t start, std::int64_t length,
          float* panel) {
  const T* const from = side.data + first * side.along + start * side.across;
  if (side.along == 1) {
    for (std::int64_t k = 0; k < length; ++k) {
      const T* const row = from + k * side.across;
      float* const to = panel + k * width;
      if (count == width)
        widen<width>(row, to);
      else
        for (std::int64_t i = 0; i < width; ++i) to[i] = i < count ? static_cast<float>(row[i]) : 0;
    }
    return;
  }
  static_assert(width < 8 || width % 8 == 0);
  for (std::int64_t i = 0; i < width; i += 8) {
    const std::int64_t lanes = std::min<std::int64_t>(8, width - i), rows = std::clamp<std::int64_t>(count - i, 0, 8);
    std::int64_t k = 0;
    for (; k + 8 <= length; k += 8) {
      Eight square[8];
#pragma GCC unroll 8
      for (int r = 0; r < 8; ++r)
        if (r < rows)
          load(square[r], from + (i + r) * side.along + k);
        else
          square[r] = Eight{};
      exchange_blocks<4>(square);
      exchange_blocks<2>(square);
      exchange_blocks<1>(square);
#pragma GCC unroll 8
      for (int l = 0; l < 8; ++l) {
        float* const to = panel + (k + l) * width + i;
        if constexpr (width % 8 == 0)
          *reinterpret_cast<UnalignedEight*>(to) = square[l];
        else
          std::memcpy(to, &square[l], sizeof(float) * (width % 8));
      }
    }
    for (; k < length; ++k)
      for (std::int64_t r = 0; r < lanes; ++r)
        panel[k * width + i + r] = r < rows ? static_cast<float>(from[(i + r) * side.along + k]) : 0;
  }
}

}  // namespace chorale::exact
