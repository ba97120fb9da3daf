// Attention of any width and type on a device, without tensor cores. A warp loops over the keys of one query, 64 at a
// time, two keys per lane.
//
//   scores of 64 keys ──▶ running maximum ──▶ exponentials ──▶ out·shrink + Σ p·v
//
// In the last step each lane sums some columns of out.
//
// The backward pass has two kernels, without atomics. In the first kernel, a warp loops over the keys of one query for
// dq. In the second, a warp loops over the queries of one key for dk and dv. The warp's own row has the vectors own₀ and
// own₁ (q and do, or k and v); each row of the loop has other₀ and other₁ (k and v, or q and do). Queries are scaled by
// 1/√width. f is the dropout factor of a probability, and D = Σ do·o per query.
//
//   s = own₀·other₀    dp = own₁·other₁    p = exp(s − lse)    ds = p·(f·dp − D)
//   d own₀ += ds·other₀    d own₁ += f·p·other₁  (only if the own row is a key)
//
// Every sum runs in the order of the host's tiles (attention_tiles.hpp), so f32 results equal the host's bits, as exact
// numerics requires.
//
// 2·rows·tokens·heads·width operations forward, 7/2 times as many backward. For each pair of query and key, 2·width
// numbers of the key and its value are read from the caches. These reads limit the kernels to about 10 TFLOP/s. 16-bit
// models use attention_tiles.cu instead.
#include "src/math/cuda/attention.cuh"

#include <algorithm>
#include <limits>

#include "src/math/cuda/kernels.cuh"
#include "src/math/cuda/numbers.cuh"
#include "src/math/cuda/reduce_block.cuh"

namespace chorale::cuda {
namespace {

constexpr int warps = 4, threads = warps * warp;  // one row per warp
constexpr int tile = 2 * warp, lanes = 16;        // keys per tile; accumulators per sum, as on the host

__device__ std::int64_t row_of_warp() { return static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / warp; }
__device__ int lane_of_thread() { return threadIdx.x % warp; }

// This warp's `count` vectors in shared memory.
template <class W>
__device__ W* own_vectors(int count, std::int64_t width) {
  return shared_memory<W>() + threadIdx.x / warp * count * width;
}

// a·(scale·b)
template <class W, class T>
__device__ W dot(const W* a, const T* b, W scale, std::int64_t width) {
  W sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum = fused(a[i], widened(b[i]) * scale, sum);
  return sum;
}

// Σ over the 64 keys of a tile: 16 parallel sums in key order, which are then added in pairs.
template <class W>
__device__ W over_tile(W near, W far) {
  const W next_near = __shfl_xor_sync(whole_warp, near, lanes), next_far = __shfl_xor_sync(whole_warp, far, lanes);
  const W sum = over_warp<lanes>(near + next_near + far + next_far, Plus{});
  return __shfl_sync(whole_warp, sum, 0);  // lane 0's sum: lanes above 15 added in another order
}

// sum = sum·shrink + Σ over lanes l < count of weight(l)·scale·vectors[first + l]
template <class W, class T>
__device__ void gather_weighted(W* sum, W shrink, W weight, const Vectors<const T>& vectors, W scale, std::int64_t first,
                                std::int64_t last, std::int64_t width) {
  const int count = last - first < warp ? static_cast<int>(last - first) : warp;
  for (std::int64_t from = 0; from < width; from += warp) {
    const std::int64_t i = from + lane_of_thread();
    W value = i < width ? sum[i] * shrink : W(0);
    for (int l = 0; l < count; ++l) {
      const W of_lane = __shfl_sync(whole_warp, weight, l);
      if (i < width) value = fused(of_lane, widened(vectors[first + l][i]) * scale, value);
    }
    if (i < width) sum[i] = value;
  }
}

// Where keys and values lie: in each sample's qkv, or in the caches.
template <class T>
struct KeyPlaces {
  const T *keys, *values;
  std::int64_t sample_stride, token_stride, group_stride;
  __device__ Vectors<const T> of(const T* first, std::int64_t sample, std::int64_t group) const {
    return {first + sample * sample_stride + group * group_stride, token_stride};
  }
};

template <class T>
__global__ void attend_rows(const T* qkv, std::int64_t rows, std::int64_t tokens, std::int64_t past, AttentionShape shape,
                            KeyPlaces<T> places, Dropout dropout, T* out, Statistic<T>* lse) {
  using W = Statistic<T>;
  const std::int64_t row = row_of_warp() / shape.heads(), head = row_of_warp() % shape.heads(), width = shape.width;
  if (row >= rows) return;
  const std::int64_t group = head / shape.queries, sample = row / tokens, seen = past + row % tokens + 1;
  const auto keys = places.of(places.keys, sample, group), values = places.of(places.values, sample, group);
  const T* query = SampleOfQkv<const T>{qkv, shape}.queries(head)[row];
  W *q = own_vectors<W>(2, width), *sum = q + width;
  const W scale = 1 / root(static_cast<W>(width));
  for (std::int64_t i = lane_of_thread(); i < width; i += warp) {
    q[i] = widened(query[i]) * scale;
    sum[i] = 0;
  }
  __syncwarp();
  W highest = -std::numeric_limits<W>::infinity(), total = 0;
  const std::uint64_t place = place_of(dropout, shape, row, head);
  auto factors = factors_of<W>(dropout);
  for (std::int64_t first = 0; first < seen; first += tile) {
    W p[2];  // this lane's two keys, 32 apart
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t key = first + half * warp + lane_of_thread();
      p[half] = key < seen ? dot(q, keys[key], W(1), width) : -std::numeric_limits<W>::infinity();
    }
    const W higher = Greater{}(highest, over_warp(Greater{}(p[0], p[1]), Greater{}));
    const W shrink = exponential<T>(highest - higher);
    for (W& score : p) score = exponential<T>(score - higher);  // 0 after the last key
    total = fused(total, shrink, over_tile(p[0], p[1]));
    highest = higher;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t from = first + half * warp, key = from + lane_of_thread();
      if (from >= seen) break;
      const W weight = p[half] * factors.at(place + static_cast<std::uint64_t>(key));
      gather_weighted(sum, half == 0 ? shrink : W(1), weight, values, W(1), from, seen, width);
    }
  }
  T* to = of_head(out, shape, head)[row];
  for (std::int64_t i = lane_of_thread(); i < width; i += warp) to[i] = rounded<T>(sum[i] * (1 / total));
  if (lse && lane_of_thread() == 0) lse[row * shape.heads() + head] = highest + logarithm(total);
}

// both[row] = Σ dout·out over the columns, for each row and head. Half a warp computes one sum.
template <class T>
__global__ void dot_rows(const T* dout, const T* out, std::int64_t count, std::int64_t width, Statistic<T>* both) {
  const std::int64_t row = 2 * row_of_warp() + lane_of_thread() / lanes, column = lane_of_thread() % lanes;
  Statistic<T> sum = 0;
  for (std::int64_t i = row * width + column; row < count && i < (row + 1) * width; i += lanes)
    sum = fused(widened(dout[i]), widened(out[i]), sum);
  sum = over_warp<lanes>(sum, Plus{});
  if (row < count && column == 0) both[row] = sum;
}

template <bool of_keys, class T>
__global__ void differentiate_rows(const T* dout, const T* qkv, std::int64_t rows, AttentionShape shape, Dropout dropout,
                                   Beside<Statistic<T>> beside, T* dqkv) {
  using W = Statistic<T>;
  const std::int64_t parts = of_keys ? shape.groups : shape.heads(), width = shape.width;
  const std::int64_t row = row_of_warp() / parts, part = row_of_warp() % parts, tokens = dropout.tokens.tokens;
  if (row >= rows) return;
  const std::int64_t start = row / tokens * tokens, token = row - start, group = of_keys ? part : part / shape.queries;
  const SampleOfQkv<const T> sample{qkv + start * shape.columns(), shape};
  const SampleOfQkv<T> gradient{dqkv + start * shape.columns(), shape};
  const T* douts = dout + start * shape.heads() * width;
  const W scale = 1 / root(static_cast<W>(width)), of_own = of_keys ? W(1) : scale, of_others = of_keys ? scale : W(1);
  const auto own = of_keys ? sample.keys(group)[token] : sample.queries(part)[token];
  const auto own_too = of_keys ? sample.values(group)[token] : of_head(douts, shape, part)[token];
  W *a = own_vectors<W>(4, width), *b = a + width, *da = b + width, *db = da + width;
  for (std::int64_t i = lane_of_thread(); i < width; i += warp) {
    a[i] = widened(own[i]) * of_own;
    b[i] = widened(own_too[i]);
    da[i] = db[i] = 0;
  }
  __syncwarp();
  auto factors = factors_of<W>(dropout);
  const std::int64_t first_head = of_keys ? group * shape.queries : part;
  for (std::int64_t head = first_head; head < first_head + (of_keys ? shape.queries : 1); ++head) {
    const auto others = of_keys ? sample.queries(head) : sample.keys(group);
    const auto others_too = of_keys ? of_head(douts, shape, head) : sample.values(group);
    const std::int64_t last = of_keys ? tokens : token + 1;
    for (std::int64_t first = of_keys ? token : 0; first < last; first += warp) {
      const std::int64_t other = first + lane_of_thread(), query = of_keys ? other : token, key = of_keys ? token : other;
      W weight = 0, slope = 0;
      if (other < last) {
        const std::int64_t at = (start + query) * shape.heads() + head;
        const W p = exponential<T>(dot(a, others[other], of_others, width) - beside.lse[at]);
        const W factor = factors.at(place_of(dropout, shape, start + query, head) + static_cast<std::uint64_t>(key));
        slope = p * fused(factor, dot(b, others_too[other], W(1), width), -beside.both[at]);
        weight = factor * p;
      }
      gather_weighted(da, W(1), slope, others, of_others, first, last, width);
      if constexpr (of_keys) gather_weighted(db, W(1), weight, others_too, W(1), first, last, width);
    }
  }
  T* to = of_keys ? gradient.keys(group)[token] : gradient.queries(part)[token];
  for (std::int64_t i = lane_of_thread(); i < width; i += warp) {
    to[i] = rounded<T>(da[i] * of_own);
    if constexpr (of_keys) gradient.values(group)[token][i] = rounded<T>(db[i]);
  }
}

template <class T>
__global__ void append_rows(const T* qkv, AttentionShape shape, std::int64_t tokens, std::int64_t past,
                            std::int64_t capacity, T* keys, T* values) {
  const std::int64_t row = blockIdx.x, to = (row / tokens * capacity + past + row % tokens) * shape.groups * shape.width;
  const SampleOfQkv<const T> sample{qkv, shape};
  for (std::int64_t i = threadIdx.x; i < shape.groups * shape.width; i += blockDim.x) {
    const std::int64_t group = i / shape.width, column = i % shape.width;
    keys[to + i] = sample.keys(group)[row][column];
    values[to + i] = sample.values(group)[row][column];
  }
}

// One warp per row, each with `vectors` vectors of shared memory.
template <class T>
Grid grid_of(std::int64_t rows, int vectors, const AttentionShape& shape) {
  return {quotient_up(rows, warps), threads,
          static_cast<std::int64_t>(warps * vectors * shape.width * sizeof(Statistic<T>))};
}

}  // namespace

void attention_forward(const Tensor& qkv, const AttentionShape& shape, const Dropout& dropout, const Tensor& out,
                       const Tensor& lse, const Queue& queue) {
  const std::int64_t rows = qkv.dim(0), tokens = dropout.tokens.tokens;
  visit_floating(qkv.dtype(), [&]<class T>(Type<T>) {
    const T* from = data<T>(qkv);
    T* to = data<T>(out);
    auto* logs = data<Statistic<T>>(lse);
    if constexpr (sizeof(T) == 2)
      if (forward_in_tiles(from, rows, shape, dropout, to, logs, queue)) return;
    const T* keys = from + shape.queries * shape.width;
    const KeyPlaces<T> places{keys, keys + shape.width, tokens * shape.columns(), shape.columns(),
                              (shape.queries + 2) * shape.width};
    launch(attend_rows<T>, grid_of<T>(rows * shape.heads(), 2, shape), queue, from, rows, tokens, 0, shape, places, dropout,
           to, logs);
  });
}

void attention_backward(const Tensor& dout, const Tensor& qkv, const Tensor& out, const Tensor& lse,
                        const AttentionShape& shape, const Dropout& dropout, const Tensor& dqkv, const Queue& queue) {
  const std::int64_t rows = qkv.dim(0), all = rows * shape.heads();
  visit_floating(qkv.dtype(), [&]<class T>(Type<T>) {
    const T *above = data<T>(dout), *from = data<T>(qkv);
    T* to = data<T>(dqkv);
    const Scratch<Statistic<T>> both(std::max<std::int64_t>(all, 1), queue);
    launch(dot_rows<T>, {quotient_up(all, 2 * warps), threads}, queue, above, data<T>(out), all, shape.width, both.get());
    const Beside<Statistic<T>> beside{data<Statistic<T>>(lse), both.get()};
    if constexpr (sizeof(T) == 2)
      if (backward_in_tiles(above, from, rows, shape, dropout, beside, to, queue)) return;
    launch(differentiate_rows<false, T>, grid_of<T>(all, 4, shape), queue, above, from, rows, shape, dropout, beside, to);
    launch(differentiate_rows<true, T>, grid_of<T>(rows * shape.groups, 4, shape), queue, above, from, rows, shape, dropout,
           beside, to);
  });
}

void attention_cached(const Tensor& qkv, const AttentionShape& shape, const Tensor& keys, const Tensor& values,
                      std::int64_t past, const Tensor& out, const Queue& queue) {
  const std::int64_t rows = qkv.dim(0), capacity = keys.dim(1), tokens = rows / keys.dim(0);
  visit_floating(qkv.dtype(), [&]<class T>(Type<T>) {
    const T* from = data<T>(qkv);
    T *cached_keys = data<T>(keys), *cached_values = data<T>(values);
    launch(append_rows<T>, {rows, threads}, queue, from, shape, tokens, past, capacity, cached_keys, cached_values);
    const std::int64_t token = shape.groups * shape.width;
    const KeyPlaces<T> places{cached_keys, cached_values, capacity * token, token, shape.width};
    launch(attend_rows<T>, grid_of<T>(rows * shape.heads(), 2, shape), queue, from, rows, tokens, past, shape, places,
           Dropout{}, data<T>(out), nullptr);
  });
}

}  // namespace chorale::cuda
