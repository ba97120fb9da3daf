// Tiles of 64 rows of a head in shared memory, and the two products of attention on them, by tensor cores. A warp has 16 rows of a tile:
//
//   scores         s[16,64] = own[16,width]·othersᵀ            own and others are tiles
//   add_weighted   sum[16,width] += s[16,64]·others[64,width]    s goes from the sums of one product into the other without leaving registers
//
// Rows lie 16 bytes further apart than they are long, so that eight of them, as ldmatrix reads, are in different banks.
#pragma once
#include "src/math/cuda/attention.cuh"
#include "src/math/cuda/instructions.cuh"
#include "src/math/cuda/reduce_block.cuh"

namespace chorale::cuda {

inline constexpr int tile_rows = 64, tile_threads = 128, warp_rows = 16;

template <int width>
inline constexpr int row_length = width + 8;
template <int width>
inline constexpr int tile_length = tile_rows* row_length<width>;

// Of s, and of sum with width for 64: 8 columns a part, four elements of each a lane.
using Scores = float[tile_rows / 8][4];
template <int width>
using Rows = float[width / 8][4];

// Where element e of part j of this lane stands: its row in the tile, its column.
__device__ inline int row_of(int e) {
  return static_cast<int>(threadIdx.x) / warp * warp_rows + static_cast<int>(threadIdx.x) % warp / 4 + e / 2 * 8;
}
__device__ inline int column_of(int j, int e) { return 8 * j + static_cast<int>(threadIdx.x) % 4 * 2 + e % 2; }

// Rows from `first` on, zeros beyond `count`, on their way. A thread stays in its column: where it reads next is one addition away.
template <int width, class T>
__device__ void load_tile(T* tile, const Vectors<const T>& rows, std::int64_t first, std::int64_t count) {
  constexpr int piece = 16 / sizeof(T), pieces = width / piece, rows_at_once = tile_threads / pieces;
  const int row = static_cast<int>(threadIdx.x) / pieces, column = static_cast<int>(threadIdx.x) % pieces * piece;
  const int rows_left = static_cast<int>(count - first);
  const T* from = rows[first + row] + column;
  T* const to = tile + row * row_length<width> + column;
#pragma unroll
  for (int r = 0; r < tile_rows; r += rows_at_once, from += rows_at_once * rows.stride)
    copy_pack_later(to + r * row_length<width>, from, row + r < rows_left);
}

// Numbers that stand beside the rows, two for each: lse, and behind those D. As above.
__device__ inline void load_beside(float* beside, const Vectors<const float>& lse, const Vectors<const float>& both,
                                   std::int64_t first, std::int64_t count) {
  static_assert(tile_threads == 2 * tile_rows);
  const int row = static_cast<int>(threadIdx.x) % tile_rows;
  copy_later(beside + threadIdx.x, (static_cast<int>(threadIdx.x) < tile_rows ? lse : both)[first + row],
             first + row < count);
}

template <int width, class T>
__device__ void scores(const T* own, const T* others, Scores& s) {
  const int lane = static_cast<int>(threadIdx.x) % warp, rows = static_cast<int>(threadIdx.x) / warp * warp_rows;
  const T* left = own + (rows + lane % 16) * row_length<width> + lane / 16 * 8;
  const T* right = others + (lane / 16 * 8 + lane % 8) * row_length<width> + lane / 8 % 2 * 8;
  for (auto& part : s)
    for (float& element : part) element = 0;
#pragma unroll
  for (int k = 0; k < width; k += 16) {
    std::uint32_t a[4], b[4];
    load_matrices(a, left + k);
#pragma unroll
    for (int n = 0; n < tile_rows; n += 16) {
      load_matrices(b, right + n * row_length<width> + k);
      multiply(s[n / 8], a, b, Type<T>{});
      multiply(s[n / 8 + 1], a, b + 2, Type<T>{});
    }
  }
}

template <class T>
__device__ std::uint32_t pair_of(float low, float high) {
  return narrow(low, Type<T>{}).bits | static_cast<std::uint32_t>(narrow(high, Type<T>{}).bits) << 16;
}

template <int width, class T>
__device__ void add_weighted(const Scores& s, const T* others, Rows<width>& sum) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
  const T* right = others + (lane / 8 % 2 * 8 + lane % 8) * row_length<width> + lane / 16 * 8;
#pragma unroll
  for (int k = 0; k < tile_rows; k += 16) {
    const auto &near = s[k / 8], &far = s[k / 8 + 1];
    const std::uint32_t a[4] = {pair_of<T>(near[0], near[1]), pair_of<T>(near[2], near[3]), pair_of<T>(far[0], far[1]),
                                pair_of<T>(far[2], far[3])};
#pragma unroll
    for (int n = 0; n < width; n += 16) {
      std::uint32_t b[4];
      load_turned(b, right + k * row_length<width> + n);
      multiply(sum[n / 8], a, b, Type<T>{});
      multiply(sum[n / 8 + 1], a, b + 2, Type<T>{});
    }
  }
}

// The warp's rows, times `scale` of each half of them (rows g, and g + 8), to where they belong.
template <int width, class T>
__device__ void store_rows(const Rows<width>& sum, const float (&scale)[2], const Vectors<T>& to, std::int64_t first,
                           std::int64_t count) {
#pragma unroll
  for (int j = 0; j < width / 8; ++j)
#pragma unroll
    for (int e = 0; e < 4; e += 2) {
      const std::int64_t row = first + row_of(e);
      if (row < count)
        *reinterpret_cast<std::uint32_t*>(to[row] + column_of(j, e)) =
            pair_of<T>(sum[j][e] * scale[e / 2], sum[j][e + 1] * scale[e / 2]);
    }
}

}  // namespace chorale::cuda
