// Attention of any width and type on a device, without tensor cores. A warp loops over the keys of one query, 64 keys at a
// time, two keys per lane.
//
//   scores of 64 keys ──▶ running maximum ──▶ exponentials ──▶ out·shrink + Σ p·v
//
// In the last step, each lane sums some columns of out. Every sum has the same order as in the host's tiles
// (attention_tiles.hpp), so f32 results are bit-identical to the host's results, as exact numerics requires.
//
// The kernel needs 2·rows·tokens·heads·width operations. For each pair of a query and a key, the 2·width elements of the key
// and its value are read from the caches. These reads limit the kernel to about 10 TFLOP/s. 16-bit models use
// attention_tiles.cu instead.
#include <limits>

#include "src/math/cuda/attention_rows.cuh"

namespace chorale::cuda {
namespace {

constexpr int tile = 2 * warp;  // keys per tile

// Returns Σ over the 64 keys of a tile: 16 parallel sums in key order, which are then added in pairs.
template <class W>
__device__ W over_tile(W near, W far) {
  const W next_near = __shfl_xor_sync(whole_warp, near, lanes), next_far = __shfl_xor_sync(whole_warp, far, lanes);
  const W sum = over_warp<lanes>(near + next_near + far + next_far, Plus{});
  return __shfl_sync(whole_warp, sum, 0);  // the sum of lane 0, because lanes above 15 add in a different order
}

// T is the type of the inputs, and S is the type of the results.
template <class T, class S>
__global__ void attend_rows(const T* qkv, const T* key_rows, std::int64_t rows, AttentionShape shape, KeyPlaces places,
                            Dropout dropout, bool continues, S* out, Statistic<T>* lse) {
  using W = Statistic<T>;
  const std::int64_t row = row_of_warp() / shape.heads(), head = row_of_warp() % shape.heads(), width = shape.width;
  if (row >= rows) return;
  const Tokens& tokens = dropout.tokens;
  const auto keys = places.keys(key_rows, row / tokens.tokens, head / shape.queries);
  const HeadVectors<const T> values{keys.first + width, keys.stride};
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
    W p[2];  // for this lane's two keys, which are 32 apart
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t key = first + half * warp + lane_of_thread();
      p[half] = key >= begin && key < end ? dot(q, keys[key], W(1), width) : nothing;
    }
    const W higher = Greater{}(highest, over_warp(Greater{}(p[0], p[1]), Greater{}));
    const W shrink = exponential<T>(highest - higher);
    for (W& score : p) score = exponential<T>(score - higher);  // 0 for a key that the query does not attend to
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
  const W share = total > 0 ? 1 / total : W(0);  // 0 if the query has not attended to any key yet
  for (std::int64_t i = lane_of_thread(); i < width; i += warp) to[i] = rounded<S>(sum[i] * share);
  if (lse && lane_of_thread() == 0) lse[at] = total > 0 ? highest + logarithm(total) : nothing;
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

}  // namespace chorale::cuda
