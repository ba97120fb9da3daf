// Attention of any width and type on a device, without tensor cores. A warp loops over the keys of one query, 64 at a
// time, two keys per lane.
//
//   scores of 64 keys ──▶ running maximum ──▶ exponentials ──▶ out·shrink + Σ p·v
//
// In the last step each lane sums some columns of out.
//
// The backward pass has two kernels, without atomics. In the first kernel, a warp loops over the keys of one query for
// dq. In the second, a warp loops over the queries of one key for dk and dv. Queries are scaled by 1/√width. f is the
// dropout factor of a probability, and D = Σ do·o per query.
//
//   s = q·k    dp = do·v    p = exp(s − lse)    ds = p·(f·dp − D)        dq += ds·k    dk += ds·q    dv += f·p·do
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

#include "src/math/cuda/exact.cuh"
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

// T is the type of the inputs, S that of the results.
template <class T, class S>
__global__ void attend_rows(const T* qkv, const T* key_rows, std::int64_t rows, AttentionShape shape, KeyPlaces places,
                            Dropout dropout, bool continues, S* out, Statistic<T>* lse) {
  using W = Statistic<T>;
  const std::int64_t row = row_of_warp() / shape.heads(), head = row_of_warp() % shape.heads(), width = shape.width;
  if (row >= rows) return;
  const Tokens& tokens = dropout.tokens;
  const auto keys = places.keys(key_rows, row / tokens.tokens, head / shape.queries);
  const Vectors<const T> values{keys.first + width, keys.stride};
  const std::int64_t begin = places.first_seen(tokens, row), end = places.last_seen(tokens, row);
  const std::int64_t at = row * shape.heads() + head;
  const T* query = SampleOfQkv<const T>{qkv, shape}.queries(head)[row];
  S* const to = of_head(out, shape, head)[row];
  W *q = own_vectors<W>(2, width), *sum = q + width;
  const W scale = 1 / root(static_cast<W>(width)), nothing = -std::numeric_limits<W>::infinity();
  W highest = continues ? lse[at] : nothing, total = highest == nothing ? 0 : 1;
  for (std::int64_t i = lane_of_thread(); i < width; i += warp) {
    q[i] = widened(query[i]) * scale;
    sum[i] = total == 0 ? W(0) : static_cast<W>(widened(to[i]));
  }
  __syncwarp();
  const std::uint64_t place = place_of(dropout, shape, row, head) + static_cast<std::uint64_t>(places.first_token);
  auto factors = factors_of<W>(dropout);
  for (std::int64_t first = begin / tile * tile; first < end; first += tile) {
    W p[2];  // this lane's two keys, 32 apart
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t key = first + half * warp + lane_of_thread();
      p[half] = key >= begin && key < end ? dot(q, keys[key], W(1), width) : nothing;
    }
    const W higher = Greater{}(highest, over_warp(Greater{}(p[0], p[1]), Greater{}));
    const W shrink = exponential<T>(highest - higher);
    for (W& score : p) score = exponential<T>(score - higher);  // 0 for a key that the query does not see
    total = fused(total, shrink, over_tile(p[0], p[1]));
    highest = higher;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t from = first + half * warp, key = from + lane_of_thread();
      if (from >= end) break;
      const W weight = p[half] * factors.at(place + static_cast<std::uint64_t>(key));
      gather_weighted(sum, half == 0 ? shrink : W(1), weight, values, W(1), from, end, width);
    }
  }
  const W share = total > 0 ? 1 / total : W(0);  // 0 if the query has seen no key yet
  for (std::int64_t i = lane_of_thread(); i < width; i += warp) to[i] = rounded<S>(sum[i] * share);
  if (lse && lane_of_thread() == 0) lse[at] = total > 0 ? highest + logarithm(total) : nothing;
}

// both[row] = Σ dout·out over the columns, for each row and head. Half a warp computes one sum.
template <class T, class S>
__global__ void dot_rows(const T* dout, const S* out, std::int64_t count, std::int64_t width, Statistic<T>* both) {
  const std::int64_t row = 2 * row_of_warp() + lane_of_thread() / lanes, column = lane_of_thread() % lanes;
  Statistic<T> sum = 0;
  for (std::int64_t i = row * width + column; row < count && i < (row + 1) * width; i += lanes)
    sum = fused(widened(dout[i]), widened(out[i]), sum);
  sum = over_warp<lanes>(sum, Plus{});
  if (row < count && column == 0) both[row] = sum;
}

// What both kernels of the backward pass read.
template <class T>
struct Inputs {
  const T *dout, *qkv, *keys;
  std::int64_t rows;
  AttentionShape shape;
  KeyPlaces places;
  Dropout dropout;
  Beside<Statistic<T>> beside;
};

// The weight f·p and the slope ds of a query and a key: the query in row `row` of `head`, key `key` of the call.
template <class T, class W = Statistic<T>>
__device__ void differentiate(const Inputs<T>& in, std::int64_t row, std::int64_t head, std::int64_t key, W score,
                              W gradient, Factors<W>& factors, W& weight, W& slope) {
  const std::int64_t at = row * in.shape.heads() + head;
  const W p = exponential<T>(score - in.beside.lse[at]);
  const W factor =
      factors.at(place_of(in.dropout, in.shape, row, head) + static_cast<std::uint64_t>(in.places.first_token + key));
  slope = p * fused(factor, gradient, -in.beside.both[at]);
  weight = factor * p;
}

template <class T, class S>
__global__ void differentiate_queries(Inputs<T> in, bool continues, S* dqkv) {
  using W = Statistic<T>;
  const AttentionShape& shape = in.shape;
  const std::int64_t row = row_of_warp() / shape.heads(), head = row_of_warp() % shape.heads(), width = shape.width;
  if (row >= in.rows) return;
  const Tokens& tokens = in.dropout.tokens;
  const auto keys = in.places.keys(in.keys, row / tokens.tokens, head / shape.queries);
  const Vectors<const T> values{keys.first + width, keys.stride};
  const W scale = 1 / root(static_cast<W>(width));
  const T *query = SampleOfQkv<const T>{in.qkv, shape}.queries(head)[row], *above = of_head(in.dout, shape, head)[row];
  S* const to = SampleOfQkv<S>{dqkv, shape}.queries(head)[row];
  W *q = own_vectors<W>(3, width), *d = q + width, *dq = d + width;
  for (std::int64_t i = lane_of_thread(); i < width; i += warp) {
    q[i] = widened(query[i]) * scale;
    d[i] = widened(above[i]);
    dq[i] = continues ? static_cast<W>(widened(to[i])) * (1 / scale) : W(0);
  }
  __syncwarp();
  auto factors = factors_of<W>(in.dropout);
  const std::int64_t end = in.places.last_seen(tokens, row);
  for (std::int64_t first = in.places.first_seen(tokens, row); first < end; first += warp) {
    const std::int64_t key = first + lane_of_thread();
    W weight = 0, slope = 0;
    if (key < end)
      differentiate(in, row, head, key, dot(q, keys[key], W(1), width), dot(d, values[key], W(1), width), factors, weight,
                    slope);
    gather_weighted(dq, W(1), slope, keys, W(1), first, end, width);
  }
  for (std::int64_t i = lane_of_thread(); i < width; i += warp) to[i] = rounded<S>(dq[i] * scale);
}

// Stores the sums dk and dv of one key. Sums of floats are one chain over all queries and heads.
template <class S>
struct FloatKeys {
  S* rows;
  bool continues;
  std::int64_t leaf;  // all queries of a sample
  template <class W>
  __device__ W begin(S* to) const {
    return continues ? static_cast<W>(widened(*to)) : W(0);
  }
  template <class W>
  __device__ void end_leaf(S*, W&) {}
  template <class W>
  __device__ void end(S* to, W sum) {
    *to = rounded<S>(sum);
  }
  __device__ void report() const {}
};

// Exact sums: the chain of every leaf of queries is rounded and added to an integer. Only one lane adds to it.
struct WholeKeys {
  std::int64_t* rows;
  Rounder rounder;
  std::int64_t leaf;
  template <class W>
  __device__ W begin(std::int64_t*) const {
    return 0;
  }
  __device__ void end_leaf(std::int64_t* to, float& sum) {
    *to = static_cast<std::int64_t>(static_cast<std::uint64_t>(*to) + rounder.whole(sum));
    sum = 0;
  }
  __device__ void end(std::int64_t*, float) {}
  __device__ void report() const { rounder.report(); }
};

// The first of `tokens` queries of a sample for which after(row) holds, or the end. It holds for all later ones.
template <class After>
__device__ std::int64_t first_query(std::int64_t start, std::int64_t tokens, After after) {
  std::int64_t low = start, high = start + tokens;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (after(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

template <class T, class Keys>
__global__ void differentiate_keys(Inputs<T> in, KeyPlaces gradients, Keys to) {
  using W = Statistic<T>;
  const AttentionShape& shape = in.shape;
  const KeyPlaces& places = in.places;
  const Tokens& tokens = in.dropout.tokens;
  const std::int64_t width = shape.width, group = row_of_warp() % shape.groups, all = row_of_warp() / shape.groups;
  const std::int64_t sample = all / places.count, key = all % places.count, start = sample * tokens.tokens;
  if (start >= in.rows) return;
  const T* own = places.keys(in.keys, sample, group)[key];
  auto* const sums = gradients.keys(to.rows, sample, group)[key];
  W *k = own_vectors<W>(4, width), *v = k + width, *dk = v + width, *dv = dk + width;
  for (std::int64_t i = lane_of_thread(); i < width; i += warp) {
    k[i] = widened(own[i]);
    v[i] = widened(own[width + i]);
    dk[i] = to.template begin<W>(sums + i);
    dv[i] = to.template begin<W>(sums + width + i);
  }
  __syncwarp();
  auto factors = factors_of<W>(in.dropout);
  const W scale = 1 / root(static_cast<W>(width));
  const std::int64_t token = places.first_token + key;
  const std::int64_t begin = first_query(start, tokens.tokens, [&](std::int64_t row) { return tokens.place(row) >= token; });
  const std::int64_t end = first_query(start, tokens.tokens, [&](std::int64_t row) { return tokens.start(row) > token; });
  for (std::int64_t head = group * shape.queries; head < (group + 1) * shape.queries; ++head) {
    const auto queries = SampleOfQkv<const T>{in.qkv, shape}.queries(head), above = of_head(in.dout, shape, head);
    for (std::int64_t leaf = start + (begin - start) / to.leaf * to.leaf; leaf < end; leaf += to.leaf) {
      const std::int64_t last = leaf + to.leaf < end ? leaf + to.leaf : end;
      for (std::int64_t first = leaf > begin ? leaf : begin; first < last; first += warp) {
        const std::int64_t row = first + lane_of_thread();
        W weight = 0, slope = 0;
        if (row < last)
          differentiate(in, row, head, key, dot(k, queries[row], scale, width), dot(v, above[row], W(1), width), factors,
                        weight, slope);
        gather_weighted(dk, W(1), slope, queries, scale, first, last, width);
        gather_weighted(dv, W(1), weight, above, W(1), first, last, width);
      }
      for (std::int64_t i = lane_of_thread(); i < width; i += warp) {
        to.end_leaf(sums + i, dk[i]);
        to.end_leaf(sums + width + i, dv[i]);
      }
    }
  }
  for (std::int64_t i = lane_of_thread(); i < width; i += warp) {
    to.end(sums + i, dk[i]);
    to.end(sums + width + i, dv[i]);
  }
  to.report();
}

// One warp per row, each with `vectors` vectors of shared memory.
template <class T>
Grid grid_of(std::int64_t rows, int vectors, const AttentionShape& shape) {
  return {quotient_up(rows, warps), threads,
          static_cast<std::int64_t>(warps * vectors * shape.width * sizeof(Statistic<T>))};
}

template <class T, class S>
Inputs<T> inputs_of(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse, Statistic<T>* both,
                    const Queue& queue) {
  const std::int64_t all = in.qkv.dim(0) * in.shape.heads();
  launch(dot_rows<T, S>, {quotient_up(all, 2 * warps), threads}, queue, data<T>(dout), data<S>(out), all, in.shape.width,
         both);
  return {data<T>(dout),      data<T>(in.qkv), data<T>(in.keys.tensor),        in.qkv.dim(0), in.shape,
          KeyPlaces(in.keys), in.dropout,      {data<Statistic<T>>(lse), both}};
}

template <class T, class Keys>
void launch_keys(const AttentionInput& in, const Inputs<T>& inputs, const KeyRows& dkeys, const Keys& to,
                 const Queue& queue) {
  const std::int64_t samples = in.qkv.dim(0) / in.dropout.tokens.tokens;
  launch(differentiate_keys<T, Keys>, grid_of<T>(samples * in.keys.count * in.shape.groups, 4, in.shape), queue, inputs,
         KeyPlaces(dkeys), to);
}

bool whole(const AttentionInput& in, const Tensor& results) {
  const Tokens& tokens = in.dropout.tokens;
  return in.keys.tensor.storage() == in.qkv.storage() && !tokens.places && !tokens.positions && !in.continues &&
         results.dtype() == in.qkv.dtype();
}

// Calls f(Type<T>{}, Type<S>{}) for inputs of type T and results of type S.
template <class F>
void visit_results(DType type, DType results, F&& f) {
  visit_floating(type, [&]<class T>(Type<T> of) {
    if (results == type) return f(of, of);
    if constexpr (sizeof(T) == 2) f(of, Type<float>{});
  });
}

}  // namespace

void attention_forward(const AttentionInput& in, const Tensor& out, const Tensor& lse, const Queue& queue) {
  const std::int64_t rows = in.qkv.dim(0);
  visit_results(in.qkv.dtype(), out.dtype(), [&]<class T, class S>(Type<T>, Type<S>) {
    auto* const logs = lse ? data<Statistic<T>>(lse) : nullptr;
    if constexpr (sizeof(T) == 2 && sizeof(S) == 2)
      if (lse && whole(in, out) && forward_in_tiles(data<T>(in.qkv), rows, in.shape, in.dropout, data<T>(out), logs, queue))
        return;
    launch(attend_rows<T, S>, grid_of<T>(rows * in.shape.heads(), 2, in.shape), queue, data<T>(in.qkv),
           data<T>(in.keys.tensor), rows, in.shape, KeyPlaces(in.keys), in.dropout, in.continues, data<S>(out), logs);
  });
}

void attention_backward(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse,
                        const Tensor& dqkv, const KeyRows& dkeys, const Queue& queue) {
  const std::int64_t rows = in.qkv.dim(0), all = rows * in.shape.heads();
  visit_results(in.qkv.dtype(), out.dtype(), [&]<class T, class S>(Type<T>, Type<S>) {
    const Scratch<Statistic<T>> both(std::max<std::int64_t>(all, 1), queue);
    const Inputs<T> inputs = inputs_of<T, S>(in, dout, out, lse, both.get(), queue);
    if constexpr (sizeof(T) == 2 && sizeof(S) == 2)
      if (whole(in, out) && dkeys.tensor.storage() == dqkv.storage() &&
          backward_in_tiles(data<T>(dout), data<T>(in.qkv), rows, in.shape, in.dropout, inputs.beside, data<T>(dqkv), queue))
        return;
    launch(differentiate_queries<T, S>, grid_of<T>(all, 3, in.shape), queue, inputs, in.continues, data<S>(dqkv));
    launch_keys(in, inputs, dkeys, FloatKeys<S>{data<S>(dkeys.tensor), in.continues, in.dropout.tokens.tokens}, queue);
  });
}

void ExactKernels::attention_backward(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse,
                                      const Tensor& dqkv, const KeyRows& dkeys, std::int64_t leaf, SumSite& site,
                                      const Queue& queue) {
  const std::int64_t all = in.qkv.dim(0) * in.shape.heads();
  const Scratch<float> both(std::max<std::int64_t>(all, 1), queue);
  const Inputs<float> inputs = inputs_of<float, float>(in, dout, out, lse, both.get(), queue);
  launch(differentiate_queries<float, float>, grid_of<float>(all, 3, in.shape), queue, inputs, in.continues,
         data<float>(dqkv));
  launch_keys(in, inputs, dkeys, WholeKeys{data<std::int64_t>(dkeys.tensor), Rounder(rounding(site, queue)), leaf}, queue);
}

}  // namespace chorale::cuda
