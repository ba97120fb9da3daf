// Token embeddings, learned positions and rotary positions on a device. Most blocks process one row. A block that gathers
// table rows must first read the ids of these rows from memory. Such a block processes four rows, so that the four reads
// overlap.
//
// The kernels are memory-bound. Gathering reads and writes a row. Learned positions also read y and the table. Rotary
// positions read and write the heads in place. The first threads of a block compute the rotations of a row once for all
// heads, in f64. Each rotation takes about two hundred operations.
#include "src/math/embedding.hpp"

#include <cmath>

#include "src/math/cuda/kernels.cuh"
#include "src/math/cuda/map.cuh"
#include "src/math/cuda/numbers.cuh"
#include "src/math/cuda/pack.cuh"
#include "src/math/cuda/reduce_block.cuh"
#include "src/math/rotation.hpp"

namespace chorale::cuda {
namespace {

constexpr int threads = 128, at_once = 4;  // at_once: number of table rows per block

// Copies rows of any type as bytes. A thread copies 16 bytes at a time, or 2 bytes if the alignment requires it.
template <class Piece>
__global__ void gather(const std::int32_t* ids, std::int64_t rows, const Piece* table, std::int64_t first,
                       std::int64_t length, std::int64_t pieces, Piece* y) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * at_once;
  std::int64_t places[at_once];
#pragma unroll
  for (int r = 0; r < at_once; ++r) places[r] = row + r < rows ? ids[row + r] - first : -1;
  for (std::int64_t p = threadIdx.x; p < pieces; p += blockDim.x) {
    Piece here[at_once];
#pragma unroll
    for (int r = 0; r < at_once; ++r)
      here[r] = places[r] >= 0 && places[r] < length ? table[places[r] * pieces + p] : Piece{};
#pragma unroll
    for (int r = 0; r < at_once; ++r)
      if (row + r < rows) y[(row + r) * pieces + p] = here[r];
  }
}

template <class T, int width>
__global__ void add_position_rows(const T* table, Tokens tokens, std::int64_t columns, T* y) {
  const T* place = table + tokens.position(blockIdx.x) * columns;
  T* row = y + blockIdx.x * columns;
  for (std::int64_t j = threadIdx.x * width; j < columns; j += blockDim.x * width) {
    const auto from = load<width>(place + j);
    auto pack = load<width>(row + j);
    for (int i = 0; i < width; ++i) pack.values[i] = rounded<T>(widened(pack.values[i]) + widened(from.values[i]));
    store<width>(row + j, pack);
  }
}

template <class T>
__global__ void rotate_rows(T* x, Rotary rotary, double log2_base, Tokens tokens, bool back) {
  using W = Statistic<T>;
  const std::int64_t half = rotary.width / 2, pairs = rotary.units * rotary.rotated * half;
  W *cosines = shared_memory<W>(), *sines = cosines + half;
  for (std::int64_t i = threadIdx.x; i < half; i += blockDim.x) {
    const math::Turn turn = math::turn_of(tokens.position(blockIdx.x), math::frequency(i, half, log2_base));
    cosines[i] = static_cast<W>(turn.cosine);
    sines[i] = static_cast<W>(back ? -turn.sine : turn.sine);
  }
  __syncthreads();
  T* row = x + blockIdx.x * rotary.units * rotary.heads * rotary.width;
  for (std::int64_t pair = threadIdx.x; pair < pairs; pair += blockDim.x) {
    const std::int64_t i = pair % half, head = pair / half;
    T *low = row + (head / rotary.rotated * rotary.heads + head % rotary.rotated) * rotary.width + i, *high = low + half;
    const W a = widened(*low), b = widened(*high);
    *low = rounded<T>(a * cosines[i] - b * sines[i]);
    *high = rounded<T>(b * cosines[i] + a * sines[i]);
  }
}

}  // namespace

void gather_rows(const Tensor& ids, const Tensor& table, std::int64_t first, const Tensor& y, const Queue& queue) {
  const auto run = [&]<class Piece>(Type<Piece>) {
    const std::int64_t pieces = table.dim(1) * size_of(table.dtype()) / static_cast<std::int64_t>(sizeof(Piece));
    launch(gather<Piece>, {quotient_up(ids.count(), at_once), threads}, queue, data<std::int32_t>(ids), ids.count(),
           data<Piece>(table), first, table.dim(0), pieces, data<Piece>(y));
  };
  const std::int64_t bytes = table.dim(1) * size_of(table.dtype());
  if (bytes % 16 == 0 && aligned(data<std::byte>(table), data<std::byte>(y)))
    run(Type<Pack<std::uint64_t, 2>>{});
  else
    run(Type<std::uint16_t>{});
}

void add_positions(const Tensor& table, const Tokens& tokens, const Tensor& y, const Queue& queue) {
  visit_floating(y.dtype(), [&]<class T>(Type<T>) {
    const T* from = data<T>(table);
    T* out = data<T>(y);
    with_packs(Type<T>{}, aligned(from, out) && y.dim(1) * sizeof(T) % 16 == 0, [&](auto width) {
      launch(add_position_rows<T, width()>, {y.dim(0), threads}, queue, from, tokens, y.dim(1), out);
    });
  });
}

void rotate(const Tensor& x, const Rotary& rotary, const Tokens& tokens, bool back, const Queue& queue) {
  visit_floating(x.dtype(), [&]<class T>(Type<T>) {
    const auto bytes = static_cast<std::int64_t>(rotary.width * sizeof(Statistic<T>));
    launch(rotate_rows<T>, {x.dim(0), threads, bytes}, queue, data<T>(x), rotary, std::log2(rotary.base), tokens, back);
  });
}

}  // namespace chorale::cuda
