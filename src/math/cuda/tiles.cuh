// Tiles of a head's rows in shared memory, and the two matrix products of attention on tensor cores. A warp has 32 rows, in
// two fragments of 16 rows. The warp processes n rows of a second tile at a time, so that each load of these rows is used by
// both fragments:
//
//                others, n rows      scores   s[32,n] += own[32,width]·othersᵀ             own and others from shared memory
//              ┌──────────────┐      pack     s in 16 bits, as a left operand              without data from other lanes
//   own, 16    │ fragment 0   │      add      sum[32,columns] += s[32,n]·others[n,columns]  others from shared memory
//        16    │ fragment 1   │
//              └──────────────┘
//
// Cost: an mma instruction (multiply) occupies the tensor cores of an H200's SM for about 1.6 cycles (62 % of the rate of
// wgmma). An ldmatrix instruction loads 512 bytes, which takes four cycles of shared memory. The table shows the number of
// ldmatrix instructions per mma, and the cycles that they take:
//
//                  16 rows, n = 64      32 rows, n = 32      32 rows, n = 64
//   scores         5/8     2.5          4/8     2            6/16    1.5
//   add            1/2     2            1/4     1            1/4     1
#pragma once
#include "src/math/cuda/attention.cuh"
#include "src/math/cuda/instructions.cuh"
#include "src/math/cuda/reduce_block.cuh"

namespace chorale::cuda {

inline constexpr int tile_warps = 4, tile_threads = tile_warps * warp, warp_rows = 32;

// One lane's share of a warp's rows in f32: two fragments, parts of 8 columns, four elements per part. Packed holds the same
// rows in 16 bits, as the left operand of multiply: two fragments, parts of 16 columns, four pairs per part.
template <int columns>
using Sums = float[2][columns / 8][4];
template <int columns>
using Packed = std::uint32_t[2][columns / 16][4];

__device__ inline int this_warp() { return static_cast<int>(threadIdx.x) / warp; }
__device__ inline int this_lane() { return static_cast<int>(threadIdx.x) % warp; }

// The row and column of this lane's element e of part j of fragment f. The row and column are relative to the warp's first
// row and column.
__device__ inline int row_of(int f, int e) { return 16 * f + this_lane() / 4 + e / 2 * 8; }
__device__ inline int column_of(int j, int e) { return 8 * j + this_lane() % 4 * 2 + e % 2; }

// Calls visit(f, j, e) for all elements of this lane.
template <int columns, class F>
__device__ void each_element(F&& visit) {
#pragma unroll
  for (int f = 0; f < 2; ++f)
#pragma unroll
    for (int j = 0; j < columns / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) visit(f, j, e);
}

// Returns the offset in a tile at which an 8-element vector (16 bytes) of a row is stored. Vectors are swizzled within each
// block of 64 columns: the order of the block's eight vectors depends on the row. An ldmatrix reads the vectors of eight
// rows at the same column, and the swizzle stores these vectors in different banks. The swizzle repeats every 8 rows and 64
// columns.
template <int width>
__device__ int place_of_piece(int row, int piece) {
  return row * width + 8 * (piece ^ (row & 7));
}
// Moves the offset of an even-numbered vector by `columns` columns, a multiple of 16. Only the first four multiples need an
// XOR; all further multiples are at constant offsets from these.
__device__ inline int columns_on(int place, int columns) { return (place ^ columns % 64) + columns / 64 * 64; }

// Returns the address at which this thread starts to read a tile whose first row is `first`. A thread reads 16 bytes of
// every rows_at_once-th row (load_tile).
template <int width, class T>
__device__ HeadVectors<const T> read_from(const HeadVectors<const T>& vectors, int first) {
  constexpr int pieces = width / 8;
  const int row = static_cast<int>(threadIdx.x) / pieces, piece = static_cast<int>(threadIdx.x) % pieces;
  return {vectors[first + row] + 8 * piece, vectors.stride};
}

// Starts to copy `rows` rows. The argument `vectors` is the result of read_from(). Rows with an index of `count` or more are
// filled with zeros. A thread always copies the same columns, so it computes its next address with one addition.
template <int width, int rows, class T>
__device__ void load_tile(T* tile, const HeadVectors<const T>& vectors, int count) {
  constexpr int pieces = width / 8, rows_at_once = tile_threads / pieces;
  static_assert(rows % rows_at_once == 0 && rows_at_once % 8 == 0);
  const int row = static_cast<int>(threadIdx.x) / pieces, piece = static_cast<int>(threadIdx.x) % pieces;
  const T* from = vectors.first;
  T* const to = tile + place_of_piece<width>(row, piece);
#pragma unroll
  for (int r = 0; r < rows; r += rows_at_once, from += rows_at_once * vectors.stride)
    copy_pack_later(to + r * width, from, row + r < count);
}

template <int width, int n, class T>
__device__ void scores(const T* own, const T* others, Sums<n>& s) {
  const int lane = this_lane(), left = place_of_piece<width>(lane % 16, lane / 16),
            right = place_of_piece<width>(lane / 16 * 8 + lane % 8, lane / 8 % 2);
#pragma unroll
  for (int k = 0; k < width; k += 16) {
    std::uint32_t a[2][4], b[4];
#pragma unroll
    for (int f = 0; f < 2; ++f) load_matrices(a[f], own + columns_on(left, k) + 16 * f * width);
#pragma unroll
    for (int c = 0; c < n; c += 16) {
      load_matrices(b, others + columns_on(right, k) + c * width);
#pragma unroll
      for (int f = 0; f < 2; ++f) {
        multiply(s[f][c / 8], a[f], b, Type<T>{});
        multiply(s[f][c / 8 + 1], a[f], b + 2, Type<T>{});
      }
    }
  }
}

template <class T>
__device__ std::uint32_t pair_of(float low, float high) {
  return narrow(low, Type<T>{}).bits | static_cast<std::uint32_t>(narrow(high, Type<T>{}).bits) << 16;
}

template <class T, int n>
__device__ void pack(const float (&s)[2][n][4], std::uint32_t (&packed)[2][n / 2][4]) {
#pragma unroll
  for (int f = 0; f < 2; ++f)
#pragma unroll
    for (int j = 0; j < n; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        packed[f][j / 2][j % 2 * 2 + half] = pair_of<T>(s[f][j][2 * half], s[f][j][2 * half + 1]);
}

template <int width, int n, int columns, class T>
__device__ void add(const Packed<n>& weights, const T* others, Sums<columns>& sum) {
  const int lane = this_lane();
  int right = place_of_piece<width>(lane % 16, lane / 16);
  // Prevents nvcc from computing the four addresses before the loop over tiles, because that would spill registers.
  asm volatile("" : "+r"(right));
#pragma unroll
  for (int k = 0; k < n; k += 16)
#pragma unroll
    for (int c = 0; c < columns; c += 16) {
      std::uint32_t b[4];
      load_turned(b, others + columns_on(right, c) + k * width);
#pragma unroll
      for (int f = 0; f < 2; ++f) {
        multiply(sum[f][c / 8], weights[f][k / 16], b, Type<T>{});
        multiply(sum[f][c / 8 + 1], weights[f][k / 16], b + 2, Type<T>{});
      }
    }
}

// Stores the warp's rows, each multiplied by its element of `scale`. The index of the warp's first row is `first`.
template <int columns, class T>
__device__ void store_rows(const Sums<columns>& sum, const float (&scale)[2][2], const HeadVectors<T>& to, int first,
                           int count) {
#pragma unroll
  for (int f = 0; f < 2; ++f)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first + row_of(f, 2 * half);
      if (row >= count) continue;
      T* const place = to[row] + column_of(0, 0);
#pragma unroll
      for (int j = 0; j < columns / 8; ++j)
        *reinterpret_cast<std::uint32_t*>(place + 8 * j) =
            pair_of<T>(sum[f][j][2 * half] * scale[f][half], sum[f][j][2 * half + 1] * scale[f][half]);
    }
}

}  // namespace chorale::cuda
