// The backward pass of attention_tiles.cu. As in attention_gradient.cu, there are two kernels. The kernel dq loops over
// tiles of keys (3 matrix products). The kernel dkv loops over tiles of queries, to compute dk and dv (4 products). A block
// keeps its own rows in shared memory: own₀ and own₁ are q and do, or k and v. Each step of the loop loads a tile of the
// other rows: other₀ and other₁ are k and v, or q and do. f is the dropout factor, and D = Σ do·o per query:
//
//   s = own₀·other₀ᵀ    dp = own₁·other₁ᵀ    p = exp(s − lse)    ds = p·(f·dp − D)
//   d own₀ += ds·other₀    d own₁ += f·p·other₁  (only if the own rows are keys)
//
//   kernel,   own rows  other     f32 numbers in a warp's registers                    shared     blocks per
//   width     a block   a step    s, dp each    sums                                   memory     multiprocessor (SM)
//   dq  64      128       64      32 × 64       dq 32 × 64                              65 KB     2
//      128      128       32      32 × 32       dq 32 × 128                             97 KB     2
//   dkv 64      128       32      32 × 32       dk, dv 32 × 64                          49 KB     2
//      128       64       64      32 × 32       dk, dv 32 × 64: half of the width      113 KB     2, which fills the memory
//
// With heads of width 128, dk and dv of 32 rows would fill all registers, so two warps share the rows. Each warp computes
// the scores of half of the queries and sums half of the columns. The warps exchange f·p and ds in 16 bits through shared
// memory, in the register order of the lanes.
//
//              queries 0‥31   32‥63                     columns 0‥63   64‥127
//   keys 0‥31  │  warp 0    │  warp 1  │  ── f·p, ds ──▶  │  warp 0    │  warp 1  │      keys 32‥63: same with warps 2, 3
//
// The backward pass needs 7/2 of the operations of the forward pass. FlashAttention needs only 5 of these 7 products,
// because it adds dq with atomics. These kernels use no atomics, so the results are bit-identical in every run. The list
// below gives the shared-memory cycles per mma instruction: the mean over the matrix products (tiles.cuh), plus copies, plus
// the exchange. An mma occupies the tensor cores for 1.6 cycles:
//
//   dq 64    (1.5 + 1.5 + 1) / 3 + 0.17 = 1.5           dkv 64    (2 + 2 + 1 + 1) / 4 + 0.13 = 1.63
//   dq 128   (2 + 2 + 1) / 3 + 0.17     = 1.83          dkv 128   (2 + 2 + 1 + 1) / 4 + 0.25 + 0.25 = 2
//
// A step has one barrier of the complete block, and a second barrier if warps share rows. The first barrier guarantees two
// things. The own rows, this step's other rows and their lse and D have arrived, because each thread has waited for its
// copies. Also, no warp still reads the previous step's other rows or exchange buffer, which this step overwrites. The
// second barrier guarantees that the exchange buffer is written before it is read.
#include <algorithm>

#include "src/math/cuda/numbers.cuh"
#include "src/math/cuda/tile_scores.cuh"

namespace chorale::cuda {
namespace {

template <bool of_keys, int width>
struct Walk {
  static constexpr int sharers = of_keys && width == 128 ? 2 : 1;  // number of warps that share 32 rows
  static constexpr int columns = width / sharers;                  // number of columns that a warp sums
  static constexpr int met = !of_keys && width == 64 ? 64 : 32;    // number of other rows for which a warp computes scores
                                                                   // in one step
  static constexpr int own_rows = tile_warps / sharers * warp_rows, other_rows = met * sharers;
  static constexpr int queries = of_keys ? other_rows : own_rows, copies_of_numbers = of_keys ? 2 : 1;
  static constexpr int exchanged =
      sharers == 1 ? 0 : 2 * tile_warps * warp_rows * met;  // in 16-bit elements, like all sizes except the sizes of f32
                                                            // arrays
  static constexpr int shared_bytes =
      2 * ((2 * own_rows + 4 * other_rows) * width + exchanged) + 4 * copies_of_numbers * 2 * queries;
  static_assert(2 * (shared_bytes + 1024) <= 228 << 10, "two blocks, with the driver's share of each");
};

// Loads lse and then D for `rows` queries. Values with an index of `count` or more are zeros, as in load_tile.
template <int rows>
__device__ void load_beside(float* beside, const HeadVectors<const float>& lse, const HeadVectors<const float>& both,
                            int first, int count) {
#pragma unroll
  for (int from = 0; from < 2 * rows; from += tile_threads) {
    const int i = from + static_cast<int>(threadIdx.x), row = i % rows;
    if (2 * rows < tile_threads && i >= 2 * rows) break;
    copy_later(beside + i, (i < rows ? lse : both)[first + row], row < count - first);
  }
}

// Replaces s by f·p and dp by ds. `beside` holds lse and D, starting with the first of these queries. Padding queries after
// the last query have zero vectors. The p of padding queries is 1, but products with the zero vectors add nothing.
template <bool of_keys, bool drops, int queries, int n>
__device__ void differentiate(float (&s)[2][n][4], float (&dp)[2][n][4], float binary, const float* beside,
                              const Dropout& dropout, std::uint64_t place) {
  Kept kept;
  if constexpr (drops) draw<of_keys, 8 * n>(dropout, place, kept);
  each_element<8 * n>([&](int f, int j, int e) {
    const int query = of_keys ? column_of(j, e) : row_of(f, e);
    const float lse = beside[query], both = beside[queries + query];
    const float p = two_to_the(fused(s[f][j][e], binary, -lse * std::numbers::log2e_v<float>));
    float factor = 1;
    if constexpr (drops) factor = keeps(kept, f, j, e) ? dropout.scale() : 0;
    s[f][j][e] = factor * p;
    dp[f][j][e] = p * fused(factor, dp[f][j][e], -both);
  });
}

// Returns the slot in the exchange buffer that warp of_warp writes and its partner (the warp that shares its rows) reads. A
// lane passes values to the lane with the same index in the partner warp.
template <int n>
__device__ Pack<std::uint32_t, 4>* slot_of(void* exchange, int of_warp, int kind, int f, int k) {
  const int slot = ((of_warp * 2 + kind) * 2 + f) * (n / 16) + k;
  return static_cast<Pack<std::uint32_t, 4>*>(exchange) + slot * warp + this_lane();
}
template <int n>
__device__ void put(const std::uint32_t (&pairs)[2][n][4], void* exchange, int kind) {
#pragma unroll
  for (int f = 0; f < 2; ++f)
#pragma unroll
    for (int k = 0; k < n; ++k)
      *slot_of<16 * n>(exchange, this_warp(), kind, f, k) = {pairs[f][k][0], pairs[f][k][1], pairs[f][k][2], pairs[f][k][3]};
}
template <int n>
__device__ void take(std::uint32_t (&pairs)[2][n][4], void* exchange, int of_warp, int kind) {
#pragma unroll
  for (int f = 0; f < 2; ++f)
#pragma unroll
    for (int k = 0; k < n; ++k) {
      const Pack<std::uint32_t, 4> four = *slot_of<16 * n>(exchange, of_warp, kind, f, k);
#pragma unroll
      for (int i = 0; i < 4; ++i) pairs[f][k][i] = four.values[i];
    }
}

// The work of a block. The block's own rows start at row `first` of the sample, and `start` is the sample's first row in the
// batch. The loop runs over the tiles of other rows from first_tile to last_tile, for each of the `heads` heads starting at
// first_head.
struct Task {
  int first, part, first_head, heads, group, first_tile, last_tile;
  std::int64_t start;
};
struct TileStep {
  int head, tile;
};
template <bool of_keys, int width>
__device__ Task task_of_block(int tokens, const AttentionShape& shape) {
  using W = Walk<of_keys, width>;
  const int tiles = (tokens + W::own_rows - 1) / W::own_rows, queries = static_cast<int>(shape.queries);
  const auto [rank, part, sample] = part_of_block(tiles, static_cast<int>(of_keys ? shape.groups : shape.heads()));
  const int first = (of_keys ? rank : tiles - 1 - rank) * W::own_rows,
            end = of_keys ? tokens : std::min(first + W::own_rows, tokens);
  return {.first = first,
          .part = part,
          .first_head = of_keys ? part * queries : part,
          .heads = of_keys ? queries : 1,
          .group = of_keys ? part : part / queries,
          .first_tile = of_keys ? first / W::other_rows : 0,
          .last_tile = (end - 1) / W::other_rows,
          .start = std::int64_t{sample} * tokens};
}

// Computes f·p and ds in 16 bits for a warp's own rows and for `met` of the other rows. `at` is the dropout index of the
// first weight.
template <bool of_keys, bool drops, int width, class T, class W = Walk<of_keys, width>>
__device__ void meet(const T* own, const T* own_too, const T* other, const T* other_too, int ahead, const float* beside,
                     const Dropout& dropout, std::uint64_t at, Packed<W::met>& weights, Packed<W::met>& slopes) {
  Sums<W::met> s = {}, dp = {};
  scores<width, W::met>(own, other, s);
  hide_future<of_keys>(s, ahead);
  scores<width, W::met>(own_too, other_too, dp);
  differentiate<of_keys, drops, W::queries>(s, dp, binary<width>, beside, dropout, at);
  pack<T>(dp, slopes);
  if constexpr (of_keys) pack<T>(s, weights);
}

template <bool of_keys, bool drops, int width, class T>
__global__ void __launch_bounds__(tile_threads, 2)
    differentiate_tiles(const T* dout, const T* qkv, AttentionShape shape, Dropout dropout, Beside<float> beside, T* dqkv) {
  using W = Walk<of_keys, width>;
  constexpr int length = W::other_rows * width, met = W::met;
  const int tokens = static_cast<int>(dropout.tokens.tokens);
  const auto [first, part, first_head, heads, group, first_tile, last_tile, start] =
      task_of_block<of_keys, width>(tokens, shape);
  const SampleOfQkv<const T> sample{qkv + start * shape.columns(), shape};
  const auto queries = sample.queries(first_head), keys = sample.keys(group), values = sample.values(group);
  const auto gradients = of_head(dout + start * shape.heads() * width, shape, first_head);
  T *own = shared_memory<T>(), *own_too = own + W::own_rows * width, *others = own_too + W::own_rows * width;
  T* const exchange = others + 4 * length;
  auto* const numbers = reinterpret_cast<float*>(exchange + W::exchanged);  // lse and D of the queries

  const auto load_numbers = [&](float* to, int head, int from) {
    const std::int64_t at = start * shape.heads() + first_head + head;
    load_beside<W::queries>(to, {beside.lse + at, shape.heads()}, {beside.both + at, shape.heads()}, from, tokens);
  };
  const auto load_others = [&](int n, const TileStep& step) {
    T* to = others + n % 2 * 2 * length;
    const int from = step.tile * W::other_rows;
    const auto load = [&](T* tile, const HeadVectors<const T>& of_first_head) {
      const HeadVectors<const T> vectors{of_first_head.first + step.head * width, of_first_head.stride};
      load_tile<width, W::other_rows>(tile, read_from<width>(vectors, from), tokens - from);
    };
    load(to, of_keys ? queries : keys);
    load(to + length, of_keys ? gradients : values);
    if constexpr (of_keys) load_numbers(numbers + n % 2 * 2 * W::queries, step.head, from);
  };
  load_tile<width, W::own_rows>(own, read_from<width>(of_keys ? keys : queries, first), tokens - first);
  load_tile<width, W::own_rows>(own_too, read_from<width>(of_keys ? values : gradients, first), tokens - first);
  if constexpr (!of_keys) load_numbers(numbers, 0, first);
  TileStep step{0, first_tile};
  load_others(0, step);

  const int row = this_warp() / W::sharers * warp_rows, member = this_warp() % W::sharers;  // first row; index among sharers
  Sums<W::columns> of_own = {}, of_own_too = {};
  for (int n = 0; step.head < heads; ++n) {
    wait_for_copies();
    __syncthreads();
    const TileStep next = step.tile < last_tile ? TileStep{step.head, step.tile + 1} : TileStep{step.head + 1, first_tile};
    if (next.head < heads) load_others(n + 1, next);
    const T *here = others + n % 2 * 2 * length, *here_too = here + length;
    const int ahead = step.tile * W::other_rows - first - row;
    Packed<met> weights, slopes;
    if (const int mine = member * met; sight<of_keys, met>(ahead + mine) != SightKind::none) {
      const std::uint64_t at =
          drops ? place_of(dropout, shape, start + (of_keys ? step.tile * W::other_rows + mine : first + row),
                           first_head + step.head) +
                      static_cast<std::uint64_t>(of_keys ? first + row : step.tile * W::other_rows)
                : 0;
      meet<of_keys, drops, width>(own + row * width, own_too + row * width, here + mine * width, here_too + mine * width,
                                  ahead + mine, numbers + (of_keys ? n % 2 * 2 * W::queries + mine : row), dropout, at,
                                  weights, slopes);
      if constexpr (W::sharers == 2) {
        put(slopes, exchange, 0);
        put(weights, exchange, 1);
      }
    }
    if constexpr (W::sharers == 2) __syncthreads();
#pragma unroll
    for (int turn = 0; turn < W::sharers; ++turn) {  // first this warp's scores, then the scores of the partner warp
      const int whose = member ^ turn, theirs = whose * met;
      if (sight<of_keys, met>(ahead + theirs) == SightKind::none) continue;
      const int from = theirs * width + member * W::columns;
      if (turn == 1) take(slopes, exchange, this_warp() ^ 1, 0);
      add<width, met, W::columns>(slopes, here + from, of_own);
      if (turn == 1) take(weights, exchange, this_warp() ^ 1, 1);
      if constexpr (of_keys) add<width, met, W::columns>(weights, here_too + from, of_own_too);
    }
    step = next;
  }
  const SampleOfQkv<T> gradient{dqkv + start * shape.columns(), shape};
  const auto store = [&](const Sums<W::columns>& sum, float scale, const HeadVectors<T>& to) {
    store_rows<W::columns>(sum, {{scale, scale}, {scale, scale}}, HeadVectors<T>{to.first + member * W::columns, to.stride},
                           first + row, tokens);
  };
  store(of_own, inverse_root<width>, of_keys ? gradient.keys(group) : gradient.queries(part));
  if constexpr (of_keys) store(of_own_too, 1, gradient.values(group));
}

}  // namespace

template <class T>
bool backward_in_tiles(const T* dout, const T* qkv, std::int64_t rows, const AttentionShape& shape, const Dropout& dropout,
                       const Beside<float>& beside, T* dqkv, const Queue& queue) {
  const std::int64_t tokens = dropout.tokens.tokens;
  return in_tiles(shape, dropout, aligned(dout, qkv, dqkv), [&](auto width, auto drops) {
    const auto walk = [&](auto of_keys) {
      using W = Walk<of_keys(), width()>;
      const Grid grid{rows / tokens * (of_keys ? shape.groups : shape.heads()) * quotient_up(tokens, W::own_rows),
                      tile_threads, W::shared_bytes};
      launch(differentiate_tiles<of_keys(), drops(), width(), T>, grid, queue, dout, qkv, shape, dropout, beside, dqkv);
    };
    walk(std::false_type{});
    walk(std::true_type{});
  });
}

template bool backward_in_tiles(const bf16*, const bf16*, std::int64_t, const AttentionShape&, const Dropout&,
                                const Beside<float>&, bf16*, const Queue&);
template bool backward_in_tiles(const f16*, const f16*, std::int64_t, const AttentionShape&, const Dropout&,
                                const Beside<float>&, f16*, const Queue&);

}  // namespace chorale::cuda
