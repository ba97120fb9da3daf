// Attention for heads of 64 and 128 in bf16 and f16, on tensor cores (after Dao 2023, FlashAttention-2): a block takes 64 queries, its four
// warps 16 each, and lets the keys and values pass by in tiles of 64, the next on its way while this one is used.
//
//   keys, values   [ tile 0 ][ tile 1 ] … [ diagonal ]        s = Q·Kᵀ ──▶ highest, exponentials ──▶ out·shrink + p·V
//   queries 64·n                                              Q, K, V in shared memory; s, out in registers
//
// Backward is one walk made twice, as in attention.cu: over key tiles for dq (3 products), over query tiles for dk and dv (4). FlashAttention
// makes do with 5 of these 7 by adding dq atomically; here nothing is, so that the bits are the same every time.
//
// Operations: 2·rows·tokens·heads·width forward, 7/2 of that backward. For 8 sequences of 2048, 16 heads of 128: 137 and 481 GFLOP, 0.17 and
// 0.61 ms at 790 TFLOP/s, of which mma.sync reaches some 60 % on an H200 (all of it takes wgmma). Memory: q, k, v, out once, 0.3 GB: 0.06 ms.
#include <limits>
#include <numbers>

#include "src/math/cuda/numbers.cuh"
#include "src/math/cuda/pack.cuh"
#include "src/math/cuda/tiles.cuh"

namespace chorale::cuda {
namespace {

// What all four lanes that share a row have.
template <class Op>
__device__ float over_row(float value, Op op) {
  value = op(value, __shfl_xor_sync(whole_warp, value, 1));
  return op(value, __shfl_xor_sync(whole_warp, value, 2));
}

// Weights are powers of two: exp(score/√width) = 2^(score·binary).
template <int width>
constexpr float inverse_root = width == 64 ? 0.125f : 0.08838834764831845f;
template <int width>
constexpr float binary = inverse_root<width>* std::numbers::log2e_v<float>;

// Of scores on the diagonal, where queries and keys of a tile begin with the same token, those of keys behind their query.
template <bool of_keys>
__device__ void hide_future(Scores& s) {
#pragma unroll
  for (int j = 0; j < tile_rows / 8; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (of_keys ? row_of(e) > column_of(j, e) : column_of(j, e) > row_of(e))
        s[j][e] = -std::numeric_limits<float>::infinity();
}

// What forward keeps of its two rows (g and g + 8).
struct Softmax {
  float highest[2] = {-std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
  float total[2] = {};  // of this lane's columns

  // Scores become exponentials relative to the highest so far; what `sum` held before shrinks to match.
  template <int width>
  __device__ void soften(Scores& s, Rows<width>& sum) {
    float best[2] = {highest[0], highest[1]}, shrink[2];
#pragma unroll
    for (int j = 0; j < tile_rows / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) best[e / 2] = fmaxf(best[e / 2], s[j][e]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      best[half] = over_row(best[half], [](float a, float b) { return fmaxf(a, b); });
      shrink[half] = two_to_the((highest[half] - best[half]) * binary<width>);
      highest[half] = best[half];
      total[half] *= shrink[half];
    }
#pragma unroll
    for (int j = 0; j < tile_rows / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        total[e / 2] += s[j][e] = two_to_the(fused(s[j][e], binary<width>, -highest[e / 2] * binary<width>));
#pragma unroll
    for (int j = 0; j < width / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[j][e] *= shrink[e / 2];
  }
};

// A bit for each of this lane's scores: whether dropout keeps its weight. The loop stays one, since random numbers made side by side would
// take all registers; `place` is that of the tile's first query and key among all weights.
template <bool of_keys>
__device__ std::uint32_t kept_weights(const Dropout& dropout, std::uint64_t place) {
  auto factors = factors_of<float>(dropout);
  const auto sequence = static_cast<std::uint64_t>(dropout.tokens.sequence);
  std::uint32_t kept = 0;
#pragma unroll 1
  for (int i = 0; i < tile_rows / 2; ++i) {
    const int row = row_of(i % 4), column = column_of(i / 4, i % 4), query = of_keys ? column : row,
              key = of_keys ? row : column;
    const float factor = factors.at(place + static_cast<std::uint64_t>(query) * sequence + static_cast<std::uint64_t>(key));
    kept |= (factor > 0 ? 1u : 0u) << i;
  }
  return kept;
}
__device__ bool keeps(std::uint32_t kept, int j, int e) { return kept >> (4 * j + e) & 1; }

// Weights that dropout drops become 0.
__device__ void drop(Scores& s, const Dropout& dropout, std::uint64_t place) {
  const std::uint32_t kept = kept_weights<false>(dropout, place);
#pragma unroll
  for (int j = 0; j < tile_rows / 8; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) s[j][e] = keeps(kept, j, e) ? s[j][e] * dropout.scale() : 0.0f;
}

template <int width, class T>
__global__ void __launch_bounds__(tile_threads)
    attend_tiles(const T* qkv, AttentionShape shape, Dropout dropout, T* out, float* lse) {
  const std::int64_t tokens = dropout.tokens.tokens, tiles = (tokens + tile_rows - 1) / tile_rows;
  const std::int64_t tile = tiles - 1 - blockIdx.x % tiles;  // the longest walks first
  const std::int64_t head = blockIdx.x / tiles % shape.heads(), start = blockIdx.x / tiles / shape.heads() * tokens;
  const SampleOfQkv<const T> sample{qkv + start * shape.columns(), shape};
  const auto keys = sample.keys(head / shape.queries), values = sample.values(head / shape.queries);
  T *queries = shared_memory<T>(), *others = queries + tile_length<width>;
  const auto load_others = [&](std::int64_t t) {
    T* to = others + t % 2 * 2 * tile_length<width>;
    load_tile<width>(to, keys, t * tile_rows, tokens);
    load_tile<width>(to + tile_length<width>, values, t * tile_rows, tokens);
  };
  load_tile<width>(queries, sample.queries(head), tile * tile_rows, tokens);
  load_others(0);

  Softmax softmax;
  Rows<width> sum = {};
  Scores s;
  std::uint64_t place = place_of(dropout, shape, start + tile * tile_rows, head);
  for (std::int64_t t = 0; t <= tile; ++t, place += tile_rows) {
    wait_for_copies();
    __syncthreads();  // what is here is whole, and nobody reads the one before, whose place the next one takes
    if (t < tile) load_others(t + 1);
    const T* here = others + t % 2 * 2 * tile_length<width>;
    scores<width>(queries, here, s);
    if (t == tile) hide_future<false>(s);
    softmax.soften<width>(s, sum);
    if (dropout.probability > 0) drop(s, dropout, place);
    add_weighted<width>(s, here + tile_length<width>, sum);
  }
  float shares[2];
  for (int half = 0; half < 2; ++half) {
    const float total = over_row(softmax.total[half], Plus{});
    const std::int64_t token = tile * tile_rows + row_of(2 * half);
    shares[half] = 1 / total;
    if (threadIdx.x % 4 == 0 && token < tokens)
      lse[(start + token) * shape.heads() + head] = softmax.highest[half] * inverse_root<width> + logarithm(total);
  }
  store_rows<width>(sum, shares, of_head(out + start * shape.heads() * width, shape, head), tile * tile_rows, tokens);
}

// s = own₀·other₀ becomes f·p, dp = own₁·other₁ becomes ds; `beside` is what load_beside brought for the queries. Of queries beyond the last
// all is zero, so that p is 1 and adds nothing.
template <bool of_keys, bool drops, int width>
__device__ void differentiate(Scores& s, Scores& dp, const float* beside, const Dropout& dropout, std::uint64_t place) {
  std::uint32_t kept = ~0u;
  if constexpr (drops) kept = kept_weights<of_keys>(dropout, place);
#pragma unroll
  for (int j = 0; j < tile_rows / 8; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int query = of_keys ? column_of(j, e) : row_of(e);
      const float lse = beside[query], both = beside[tile_rows + query];
      const float p = two_to_the(fused(s[j][e], binary<width>, -lse * std::numbers::log2e_v<float>));
      const float factor = !drops ? 1 : keeps(kept, j, e) ? dropout.scale() : 0;
      s[j][e] = factor * p;
      dp[j][e] = p * fused(factor, dp[j][e], -both);
    }
}

template <bool of_keys, bool drops, int width, class T>
__global__ void __launch_bounds__(tile_threads, width == 64 ? 3 : 2)
    differentiate_tiles(const T* dout, const T* qkv, AttentionShape shape, Dropout dropout, Beside<float> beside, T* dqkv) {
  const std::int64_t tokens = dropout.tokens.tokens, tiles = (tokens + tile_rows - 1) / tile_rows;
  const std::int64_t parts = of_keys ? shape.groups : shape.heads();
  const std::int64_t tile = of_keys ? blockIdx.x % tiles : tiles - 1 - blockIdx.x % tiles, part = blockIdx.x / tiles % parts;
  const std::int64_t start = blockIdx.x / tiles / parts * tokens, group = of_keys ? part : part / shape.queries;
  const SampleOfQkv<const T> sample{qkv + start * shape.columns(), shape};
  const T* douts = dout + start * shape.heads() * width;
  T *own = shared_memory<T>(), *own_too = own + tile_length<width>, *others = own_too + tile_length<width>;
  auto* const numbers = reinterpret_cast<float*>(others + 4 * tile_length<width>);  // of the queries, own or others

  // What passes by, one step after another: the tiles that a head of queries shares with this one, head after head.
  struct Step {
    std::int64_t head, tile;
  };
  const std::int64_t first_tile = of_keys ? tile : 0, last_tile = of_keys ? tiles - 1 : tile;
  const std::int64_t steps = (of_keys ? shape.queries : 1) * (last_tile - first_tile + 1);
  const auto behind = [&](const Step& step) {
    return step.tile < last_tile ? Step{step.head, step.tile + 1} : Step{step.head + 1, first_tile};
  };
  const auto load_numbers = [&](float* to, std::int64_t head, std::int64_t first) {
    const std::int64_t at = start * shape.heads() + head;
    load_beside(to, {beside.lse + at, shape.heads()}, {beside.both + at, shape.heads()}, first, tokens);
  };
  const auto load_others = [&](std::int64_t n, const Step& step) {
    T* to = others + n % 2 * 2 * tile_length<width>;
    const std::int64_t first = step.tile * tile_rows;
    load_tile<width>(to, of_keys ? sample.queries(step.head) : sample.keys(group), first, tokens);
    load_tile<width>(to + tile_length<width>, of_keys ? of_head(douts, shape, step.head) : sample.values(group), first,
                     tokens);
    if constexpr (of_keys) load_numbers(numbers + n % 2 * 2 * tile_rows, step.head, first);
  };
  load_tile<width>(own, of_keys ? sample.keys(group) : sample.queries(part), tile * tile_rows, tokens);
  load_tile<width>(own_too, of_keys ? sample.values(group) : of_head(douts, shape, part), tile * tile_rows, tokens);
  if constexpr (!of_keys) load_numbers(numbers, part, tile * tile_rows);
  Step step{of_keys ? group * shape.queries : part, first_tile};
  load_others(0, step);

  Rows<width> of_own = {}, of_own_too = {};
  Scores s, dp;
  for (std::int64_t n = 0; n < steps; ++n) {
    wait_for_copies();
    __syncthreads();  // as in forward
    const Step next = behind(step);
    if (n + 1 < steps) load_others(n + 1, next);
    const T *here = others + n % 2 * 2 * tile_length<width>, *here_too = here + tile_length<width>;
    scores<width>(own, here, s);
    if (step.tile == tile) hide_future<of_keys>(s);
    scores<width>(own_too, here_too, dp);
    std::uint64_t place = 0;
    if constexpr (drops) {
      const std::int64_t queries = of_keys ? step.tile : tile, keys = of_keys ? tile : step.tile;
      place =
          place_of(dropout, shape, start + queries * tile_rows, step.head) + static_cast<std::uint64_t>(keys * tile_rows);
    }
    differentiate<of_keys, drops, width>(s, dp, numbers + (of_keys ? n % 2 * 2 * tile_rows : 0), dropout, place);
    add_weighted<width>(dp, here, of_own);
    if constexpr (of_keys) add_weighted<width>(s, here_too, of_own_too);
    step = next;
  }
  const SampleOfQkv<T> gradient{dqkv + start * shape.columns(), shape};
  const float scales[2] = {inverse_root<width>, inverse_root<width>}, ones[2] = {1, 1};
  store_rows<width>(of_own, scales, of_keys ? gradient.keys(group) : gradient.queries(part), tile * tile_rows, tokens);
  if constexpr (of_keys) store_rows<width>(of_own_too, ones, gradient.values(group), tile * tile_rows, tokens);
}

// Calls f(width) where tiles can be made of such heads.
template <class F>
bool with_width(const AttentionShape& shape, bool aligned, F&& f) {
  if (!aligned || (shape.width != 64 && shape.width != 128)) return false;
  if (shape.width == 64)
    f(std::integral_constant<int, 64>{});
  else
    f(std::integral_constant<int, 128>{});
  return true;
}

template <int width>
Grid grid_of(std::int64_t rows, std::int64_t parts, std::int64_t tokens, int tiles_kept, int numbers_kept) {
  return {rows / tokens * parts * quotient_up(tokens, tile_rows), tile_threads,
          tiles_kept * tile_length<width> * 2 + numbers_kept * 4};
}

}  // namespace

template <class T>
bool forward_in_tiles(const T* qkv, std::int64_t rows, const AttentionShape& shape, const Dropout& dropout, T* out,
                      float* lse, const Queue& queue) {
  return with_width(shape, aligned(qkv, out), [&](auto width) {
    launch(attend_tiles<width(), T>, grid_of<width()>(rows, shape.heads(), dropout.tokens.tokens, 5, 0), queue, qkv, shape,
           dropout, out, lse);
  });
}

template <class T>
bool backward_in_tiles(const T* dout, const T* qkv, std::int64_t rows, const AttentionShape& shape, const Dropout& dropout,
                       const Beside<float>& beside, T* dqkv, const Queue& queue) {
  const std::int64_t tokens = dropout.tokens.tokens;
  return with_width(shape, aligned(dout, qkv, dqkv), [&](auto width) {
    const auto walk = [&](auto of_keys, auto drops) {
      const Grid grid = grid_of<width()>(rows, of_keys ? shape.groups : shape.heads(), tokens, 6, 4 * tile_rows);
      launch(differentiate_tiles<of_keys(), drops(), width(), T>, grid, queue, dout, qkv, shape, dropout, beside, dqkv);
    };
    const auto both_walks = [&](auto drops) {
      walk(std::false_type{}, drops);
      walk(std::true_type{}, drops);
    };
    if (dropout.probability > 0) return both_walks(std::true_type{});
    both_walks(std::false_type{});  // random numbers cost registers, even where none are drawn
  });
}

template bool forward_in_tiles(const bf16*, std::int64_t, const AttentionShape&, const Dropout&, bf16*, float*,
                               const Queue&);
template bool forward_in_tiles(const f16*, std::int64_t, const AttentionShape&, const Dropout&, f16*, float*, const Queue&);
template bool backward_in_tiles(const bf16*, const bf16*, std::int64_t, const AttentionShape&, const Dropout&,
                                const Beside<float>&, bf16*, const Queue&);
template bool backward_in_tiles(const f16*, const f16*, std::int64_t, const AttentionShape&, const Dropout&,
                                const Beside<float>&, f16*, const Queue&);

}  // namespace chorale::cuda
