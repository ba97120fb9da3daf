// The backward pass of attention.cu, without atomics, in two kernels. In the first kernel, a warp loops over the keys of one
// query to compute dq. In the second kernel, a warp loops over the queries of one key to compute dk and dv. Queries are
// scaled by 1/√width. f is the dropout factor of a probability, and D = Σ do·o per query.
//
//   s = q·k    dp = do·v    p = exp(s − lse)    ds = p·(f·dp − D)        dq += ds·k    dk += ds·q    dv += f·p·do
//
// Every sum has the same order as in the host's tiles (attention_gradients.hpp), so f32 results are bit-identical to the
// host's results.
//
// The kernels need 7·rows·tokens·heads·width operations. As in the forward pass, reads from the caches limit the speed.
#include <algorithm>

#include "src/math/cuda/attention_rows.cuh"
#include "src/math/cuda/exact.cuh"

namespace chorale::cuda {
namespace {

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

// The inputs of both kernels of the backward pass.
template <class T>
struct Inputs {
  const T *dout, *qkv, *keys;
  std::int64_t rows;
  AttentionShape shape;
  KeyPlaces places;
  Dropout dropout;
  Beside<Statistic<T>> beside;
};

// Computes the weight f·p and the slope ds of a query and a key. The query belongs to `head` in row `row`, and `key` is the
// key's index in the call.
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
  const HeadVectors<const T> values{keys.first + width, keys.stride};
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

// Stores the sums dk and dv of one key. Each float sum is one chain over all queries and heads.
template <class S>
struct FloatKeys {
  S* rows;
  bool continues;
  std::int64_t leaf;  // number of queries in a sample, so that all of them form one chain
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

// Accumulates exact sums: the chain of each leaf of queries is rounded and added to an integer. Only one lane adds to each
// integer.
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

// Returns the first of a sample's `tokens` queries for which after(row) is true, or the end. If after() is true for a query,
// it must also be true for all later queries.
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

}  // namespace

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
