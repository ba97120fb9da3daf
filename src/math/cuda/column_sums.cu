// Sums over tokens on a device, without atomics, so that results are bit-identical in every run. A block has 8 warps, called
// strands. There are two stages:
//
//            columns of a tile, one pack per lane
//   rows    ┌──────────────────────────────┐
//   of a    │ strand 0 takes rows 0, 8, …  │    1. the strands are added in shared memory ──▶ partials [chunk][column]
//   chunk   │ strand 7 takes rows 7, 15, … │    2. one block adds the partials of 32 columns, again in strands
//           └──────────────────────────────┘
//
// The kernels are memory-bound: dy (and x for norms) is read once, and the partials have 1/64 as many elements. For [16384,
// 4096] in bf16, the kernels take 28 µs, or 56 µs for norms.
#include <algorithm>

#include "src/math/cuda/kernels.cuh"
#include "src/math/cuda/numbers.cuh"
#include "src/math/cuda/pack.cuh"
#include "src/math/cuda/reduce_block.cuh"

namespace chorale::cuda {
namespace {

constexpr int strands = 8, threads = strands * warp;

// Adds the strands' sums of a tile in order. Then strand 0 calls put(i, sum).
template <int width, class W, class Put>
__device__ void meet(const W (&sums)[width], bool inside, Put put) {
  W* const shared = shared_memory<W>();
  const int lane = threadIdx.x % warp, strand = threadIdx.x / warp;
  __syncthreads();
  for (int i = 0; i < width; ++i) shared[(strand * width + i) * warp + lane] = sums[i];
  __syncthreads();
  if (strand > 0 || !inside) return;
  for (int i = 0; i < width; ++i) {
    W sum = sums[i];
    for (int s = 1; s < strands; ++s) sum += shared[(s * width + i) * warp + lane];
    put(i, sum);
  }
}

// partials[chunk][0] = Σ dy. With `normal`, also partials[chunk][1] = Σ dy·(x − mean)·rstd.
template <bool normal, class T, int width>
__global__ void column_partials(const T* dy, const T* x, const Statistic<T>* stats, std::int64_t rows, std::int64_t columns,
                                std::int64_t chunk, Statistic<T>* partials) {
  using W = Statistic<T>;
  const std::int64_t tiles = (columns + warp * width - 1) / (warp * width), part = blockIdx.x / tiles;
  const std::int64_t column = (blockIdx.x % tiles * warp + threadIdx.x % warp) * width;
  const bool inside = column < columns;
  W plain[width] = {}, normals[width] = {};
  const std::int64_t last = !inside ? 0 : (part + 1) * chunk < rows ? (part + 1) * chunk : rows;
#pragma unroll 4  // loads of four rows are in flight at the same time
  for (std::int64_t row = part * chunk + threadIdx.x / warp; row < last; row += strands) {
    const auto slopes = load<width>(dy + row * columns + column);
    for (int i = 0; i < width; ++i) plain[i] += widened(slopes.values[i]);
    if constexpr (normal) {
      const auto values = load<width>(x + row * columns + column);
      const W mean = stats[2 * row], rstd = stats[2 * row + 1];
      for (int i = 0; i < width; ++i)
        normals[i] = fused(widened(slopes.values[i]), (widened(values.values[i]) - mean) * rstd, normals[i]);
    }
  }
  W* out = partials + part * (normal ? 2 : 1) * columns + column;
  meet(plain, inside, [&](int i, W sum) { out[i] = sum; });
  if constexpr (normal) meet(normals, inside, [&](int i, W sum) { out[columns + i] = sum; });
}

// A block has 32 columns. Each of its strands adds the partials of every eighth chunk, with 16 reads in flight. The first
// `columns` of the `stride` columns are added to `sums`, and the remaining columns to `normal_sums`.
template <class W>
__global__ void add_partials(const W* partials, std::int64_t parts, std::int64_t stride, std::int64_t columns, W* sums,
                             W* normal_sums) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * warp + threadIdx.x % warp;
  W* const out = column < columns ? sums : normal_sums - columns;
  const bool inside = column < stride && (column >= columns || sums);
  const std::int64_t last = inside ? parts : 0;
  W total[1] = {};
#pragma unroll 16
  for (std::int64_t part = threadIdx.x / warp; part < last; part += strands) total[0] += partials[part * stride + column];
  meet(total, inside, [&](int, W sum) { out[column] += sum; });
}

// The number of rows per chunk: 64, or more if there would be more than 512 chunks. The chunk size depends only on the
// number of rows.
std::int64_t chunk_of(std::int64_t rows) { return std::max<std::int64_t>(64, quotient_up(rows, 512)); }

template <bool normal, class T>
void sum_columns(const T* dy, const T* x, const Statistic<T>* stats, std::int64_t rows, std::int64_t columns,
                 Statistic<T>* sums, Statistic<T>* normal_sums, const Queue& queue) {
  using W = Statistic<T>;
  const std::int64_t chunk = chunk_of(rows), parts = quotient_up(rows, chunk), stride = (normal ? 2 : 1) * columns;
  const Scratch<W> partials(std::max<std::int64_t>(parts * stride, 1), queue);
  with_packs(Type<T>{}, aligned(dy, x) && columns * sizeof(T) % 16 == 0, [&](auto width) {
    const std::int64_t tiles = quotient_up(columns, warp * width());
    const Grid grid{parts * tiles, threads, static_cast<std::int64_t>(threads * width() * sizeof(W))};
    launch(column_partials<normal, T, width()>, grid, queue, dy, x, stats, rows, columns, chunk, partials.get());
  });
  const Grid grid{quotient_up(stride, warp), threads, static_cast<std::int64_t>(threads * sizeof(W))};
  launch(add_partials<W>, grid, queue, partials.get(), parts, stride, columns, sums, normal_sums);
}

std::int64_t columns_of(const Tensor& dy) { return dy.dim(0) ? dy.count() / dy.dim(0) : 0; }

}  // namespace

void add_columns(const Tensor& dy, const Tensor& db, const Queue& queue) {
  visit_floating(dy.dtype(), [&]<class T>(Type<T>) {
    sum_columns<false>(data<T>(dy), static_cast<const T*>(nullptr), static_cast<const Statistic<T>*>(nullptr), dy.dim(0),
                       columns_of(dy), data<Statistic<T>>(db), static_cast<Statistic<T>*>(nullptr), queue);
  });
}

void add_norm_gradients(const Tensor& dy, const Tensor& x, const Tensor& stats, const Tensor& dgain, const Tensor* dshift,
                        const Queue& queue) {
  visit_floating(dy.dtype(), [&]<class T>(Type<T>) {
    using W = Statistic<T>;
    sum_columns<true>(data<T>(dy), data<T>(x), data<W>(stats), dy.dim(0), columns_of(dy), data<W>(dshift), data<W>(dgain),
                      queue);
  });
}

}  // namespace chorale::cuda
