// Attention for 16-bit heads of width 64 and 128 on tensor cores (after Dao 2023, FlashAttention-2). A block keeps 128
// queries, 32 per warp, and loops over the keys and values in tiles of 64. While one tile is used, the next tile is copied.
//
//   shared memory                                                 registers of a lane
//   queries        [ 128 × width ]                                s[32,64]        64; when packed, 32
//   keys, values   [ 64 × width ] twice, double-buffered          out[32,width]   64 or 128
//
//   s = Q·Kᵀ ──▶ row maximum, exponentials ──▶ out·shrink + p·V          a warp skips tiles that none of its queries needs
//
// A call takes 2·rows·tokens·heads·width flops, plus 6 % for masked scores if sequences have 1024 tokens. A warp issues
// 2·width mma instructions per tile, half for s and half for out. An mma needs 3/8 of an ldmatrix instruction for s, or 1/4
// for out (tiles.cuh). An ldmatrix takes 4 cycles of shared memory, so an mma needs 1.25 cycles on average, plus 0.25 for
// copies. The mma itself occupies the tensor cores for about 1.6 cycles.
//
// One barrier per tile is enough. The barrier comes after the wait for this tile's copies, so that all warps see the copied
// data. The barrier comes before the copies into the previous tile's buffer, so that no warp still reads that buffer. The
// queries arrive together with the first tile.
#include <algorithm>

#include "src/math/cuda/numbers.cuh"
#include "src/math/cuda/tile_scores.cuh"

namespace chorale::cuda {
namespace {

constexpr int own_rows = tile_warps * warp_rows, other_rows = 64;

// Reduces over the four lanes that share a row.
template <class Op>
__device__ float over_row(float value, Op op) {
  value = op(value, __shfl_xor_sync(whole_warp, value, 1));
  return op(value, __shfl_xor_sync(whole_warp, value, 2));
}

// A lane's softmax state for one row. A lane has two rows in each fragment of 16 rows (tiles.cuh).
struct Softmax {
  float highest = -std::numeric_limits<float>::infinity();
  float total = 0;  // sum over this lane's columns

  // Replaces the scores of row `half` of a fragment by exponentials relative to the highest score so far, and rescales the
  // earlier sums accordingly.
  template <int width>
  __device__ void soften(float (&s)[other_rows / 8][4], float (&sum)[width / 8][4], int half) {
    float best = highest;
#pragma unroll
    for (auto& part : s) best = fmaxf(best, fmaxf(part[2 * half], part[2 * half + 1]));
    best = over_row(best, [](float a, float b) { return fmaxf(a, b); });
    const float shrink = two_to_the((highest - best) * binary<width>), top = best * binary<width>;
    highest = best;
    total *= shrink;
#pragma unroll
    for (auto& part : s)
#pragma unroll
      for (int e = 2 * half; e < 2 * half + 2; ++e) total += part[e] = two_to_the(fused(part[e], binary<width>, -top));
#pragma unroll
    for (auto& part : sum)
#pragma unroll
      for (int e = 2 * half; e < 2 * half + 2; ++e) part[e] *= shrink;
  }
};

// Applies dropout: sets dropped weights to 0 and scales all other weights.
__device__ void drop(Sums<other_rows>& s, const Dropout& dropout, std::uint64_t place) {
  Kept kept;
  draw<false, other_rows>(dropout, place, kept);
  each_element<other_rows>(
      [&](int f, int j, int e) { s[f][j][e] = keeps(kept, f, j, e) ? s[f][j][e] * dropout.scale() : 0.0f; });
}

template <bool drops, int width, class T>
__global__ void __launch_bounds__(tile_threads, 2)
    attend_tiles(const T* qkv, AttentionShape shape, Dropout dropout, T* out, float* lse) {
  constexpr int length = other_rows * width;
  const int tokens = static_cast<int>(dropout.tokens.tokens), tiles = (tokens + own_rows - 1) / own_rows;
  const auto [rank, head, number] = part_of_block(tiles, static_cast<int>(shape.heads()));
  const int first = (tiles - 1 - rank) * own_rows, group = head / static_cast<int>(shape.queries);
  const std::int64_t start = std::int64_t{number} * tokens;
  const SampleOfQkv<const T> sample{qkv + start * shape.columns(), shape};
  auto keys = read_from<width>(sample.keys(group), 0);
  T *queries = shared_memory<T>(), *others = queries + own_rows * width;
  const auto load_others = [&](int t) {
    T* to = others + t % 2 * 2 * length;
    load_tile<width, other_rows>(to, keys, tokens - t * other_rows);
    load_tile<width, other_rows>(to + length, HeadVectors<const T>{keys.first + width, keys.stride},
                                 tokens - t * other_rows);
    keys.first += other_rows * keys.stride;
  };
  load_tile<width, own_rows>(queries, read_from<width>(sample.queries(head), first), tokens - first);
  load_others(0);

  const int own = this_warp() * warp_rows;  // the warp's first row
  Softmax softmax[2][2];
  Sums<width> sum = {};
  const int last = (std::min(first + own_rows, tokens) - 1) / other_rows;
  int ahead = -first - own;
  for (int t = 0; t <= last; ++t, ahead += other_rows) {
    wait_for_copies();
    __syncthreads();
    if (t < last) load_others(t + 1);
    if (sight<false, other_rows>(ahead) == SightKind::none) continue;
    const T* here = others + t % 2 * 2 * length;
    Sums<other_rows> s = {};
    scores<width, other_rows>(queries + own * width, here, s);
    hide_future<false>(s, ahead);
#pragma unroll
    for (int f = 0; f < 2; ++f)
#pragma unroll
      for (int half = 0; half < 2; ++half) softmax[f][half].soften<width>(s[f], sum[f], half);
    if constexpr (drops) {
      const std::uint64_t place = place_of(dropout, shape, start + first, head);
      drop(s, dropout,
           place + static_cast<std::uint64_t>(own * dropout.tokens.sequence) + static_cast<std::uint64_t>(t * other_rows));
    }
    Packed<other_rows> weights;
    pack<T>(s, weights);
    add<width, other_rows, width>(weights, here + length, sum);
  }
  float shares[2][2];
#pragma unroll
  for (int f = 0; f < 2; ++f)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float total = over_row(softmax[f][half].total, Plus{});
      const std::int64_t token = first + own + row_of(f, 2 * half);
      shares[f][half] = 1 / total;
      if (this_lane() % 4 == 0 && token < tokens)
        lse[(start + token) * shape.heads() + head] = softmax[f][half].highest * inverse_root<width> + logarithm(total);
    }
  store_rows<width>(sum, shares, of_head(out + start * shape.heads() * width, shape, head), first + own, tokens);
}

}  // namespace

template <class T>
bool forward_in_tiles(const T* qkv, std::int64_t rows, const AttentionShape& shape, const Dropout& dropout, T* out,
                      float* lse, const Queue& queue) {
  const std::int64_t tokens = dropout.tokens.tokens;
  return in_tiles(shape, dropout, aligned(qkv, out), [&](auto width, auto drops) {
    const Grid grid{rows / tokens * shape.heads() * quotient_up(tokens, own_rows), tile_threads,
                    (own_rows + 4 * other_rows) * width() * 2};
    launch(attend_tiles<drops(), width(), T>, grid, queue, qkv, shape, dropout, out, lse);
  });
}

template bool forward_in_tiles(const bf16*, std::int64_t, const AttentionShape&, const Dropout&, bf16*, float*,
                               const Queue&);
template bool forward_in_tiles(const f16*, std::int64_t, const AttentionShape&, const Dropout&, f16*, float*, const Queue&);

}  // namespace chorale::cuda
