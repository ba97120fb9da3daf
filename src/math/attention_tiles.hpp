// Code shared by the host's attention kernels. The functions split f32 sequences into tiles of 64 tokens, compute dropout
// factors for a row of probabilities, and run the forward pass of one group over tiles of keys.
//
//                     keys 0–63    64–127
//   queries 0–63      ░            ·            tiles above the diagonal are skipped; in a tile on the diagonal, each
//          64–127     ▓            ░            block of 8 queries stops at the last key that any of its queries needs
//
// Rows are padded with zeros to a multiple of 16 floats, and tiles are padded to 64 rows. Products therefore need no edge
// cases.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "src/base/parallel.hpp"
#include "src/base/round_up.hpp"
#include "src/math/attention.hpp"
#include "src/math/lane_sums.hpp"
#include "src/math/tile.hpp"
#include "src/math/vector_math.hpp"

namespace chorale::attention {

inline constexpr std::int64_t side = 64, lanes = 16;  // `side`: number of rows (and columns) of a tile; `lanes`: number of
                                                      // accumulators of a row sum

// A zeroed array of four-byte elements, aligned to cache lines.
template <class Word>
class Lines {
 public:
  explicit Lines(std::int64_t count) : lines_(static_cast<std::size_t>(round_up(count, lanes) / lanes)) {}
  Word* data() { return lines_.data()->values; }
  const Word* data() const { return lines_.data()->values; }

 private:
  struct alignas(64) Line {
    Word values[lanes] = {};
  };
  std::vector<Line> lines_;
};
using Floats = Lines<float>;

// Prefetches the row that is `rows_ahead` rows later. The rows of a head are too far apart for the hardware prefetcher.
inline constexpr std::int64_t rows_ahead = 16;
template <class T>
[[gnu::always_inline]] inline void fetch_ahead(const T* row, std::int64_t stride, std::int64_t width) {
  constexpr std::int64_t line = 64 / sizeof(T);
  for (std::int64_t i = 0; i < width; i += line) __builtin_prefetch(row + rows_ahead * stride + i);
}

// widen() copies `count` vectors, which start `stride` elements apart, into the rows of a float matrix. narrow() copies rows
// back.
template <class T>
void widen(const T* from, std::int64_t stride, std::int64_t count, std::int64_t width, float scale, float* to) {
  const std::int64_t row = round_up(width, lanes);
  for (std::int64_t r = 0; r < count; ++r) {
    fetch_ahead(from + r * stride, stride, width);
    for (std::int64_t i = 0; i < width; ++i) to[r * row + i] = scale * static_cast<float>(from[r * stride + i]);
  }
}
template <class T>
void narrow(const float* from, float scale, std::int64_t count, std::int64_t width, T* to, std::int64_t stride) {
  const std::int64_t row = round_up(width, lanes);
  for (std::int64_t r = 0; r < count; ++r) {
    fetch_ahead(to + r * stride, stride, width);
    for (std::int64_t i = 0; i < width; ++i) to[r * stride + i] = static_cast<T>(scale * from[r * row + i]);
  }
}

// Transposes a 16 × 16 block in four rounds. Each round interleaves rows i and i + 8 into rows 2i and 2i + 1, like a perfect
// card shuffle. With AVX-512, all rows stay in registers. Without AVX-512, the rows are stored in memory, because GCC would
// split the registers into single elements.
template <class Word>
void transpose_block(const Word* from, std::int64_t from_row, Word* to, std::int64_t to_row) {
#ifdef __AVX512F__
  using Row [[gnu::vector_size(64)]] = Word;
  Row rows[lanes], next[lanes];
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) std::memcpy(&rows[i], from + i * from_row, sizeof(Row));
#pragma GCC unroll 4
  for (int round = 0; round < 4; ++round) {
#pragma GCC unroll 8
    for (int i = 0; i < lanes / 2; ++i) {
      const Row a = rows[i], b = rows[i + lanes / 2];
      next[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      next[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) std::memcpy(to + i * to_row, &rows[i], sizeof(Row));
#else
  Word block[2][lanes][lanes];
  for (std::int64_t i = 0; i < lanes; ++i) std::copy_n(from + i * from_row, lanes, block[0][i]);
  for (int round = 0; round < 4; ++round)
    for (std::int64_t i = 0; i < lanes / 2; ++i) {
      const Word *a = block[round % 2][i], *b = block[round % 2][i + lanes / 2];
      Word* both = block[1 - round % 2][2 * i];  // rows 2i and 2i + 1
#pragma GCC unroll 1  // if this loop is unrolled, GCC does not vectorize it
      for (std::int64_t l = 0; l < lanes; ++l) {
        both[2 * l] = a[l];
        both[2 * l + 1] = b[l];
      }
    }
  for (std::int64_t i = 0; i < lanes; ++i) std::copy_n(block[0][i], lanes, to + i * to_row);
#endif
}

// Transposes a matrix [rows, columns] that consists of complete blocks.
template <class Word>
void transpose(const Word* from, std::int64_t rows, std::int64_t columns, Word* to) {
  for (std::int64_t i = 0; i < columns; i += lanes)
    for (std::int64_t r = 0; r < rows; r += lanes) transpose_block(from + r * columns + i, columns, to + i * rows + r, rows);
}

// Transposes each tile of 64 rows to a matrix [row, 64].
void transpose_tiles(const float* from, std::int64_t count, std::int64_t row, float* to);

// Throws if the shapes or types of the arguments do not match.
void check(const AttentionInput& in, const Tensor& out, const Tensor& lse);
void check(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse, const Tensor& dqkv,
           const KeyRows& dkeys, DType sums);        // sums: the type of dkeys
KernelWork work(const AttentionInput& in);           // the work of the forward pass
KernelWork backward_work(const AttentionInput& in);  // the work of the backward pass: five products instead of two

// The keys that a query attends to, as a range of the call's keys.
struct Sight {
  std::int64_t first = 0, last = 0;  // the keys in [`first`, `last`)
};
inline Sight sight_of(std::int64_t row, const Tokens& tokens, const KeyRows& keys) {
  const auto key = [&](std::int64_t token) { return std::clamp<std::int64_t>(token - keys.first_token, 0, keys.count); };
  return {key(tokens.start(row)), key(tokens.place(row) + 1)};
}

// The index of the first key of a sample and group in a tensor.
inline std::int64_t first_key(const KeyRows& keys, std::int64_t sample, std::int64_t group) {
  return (keys.first_row + sample * keys.sample_rows) * keys.row + keys.offset + group * keys.group;
}
inline std::int64_t first_query(const AttentionShape& shape, std::int64_t row, std::int64_t head) {
  return row * shape.columns() + (head + head / shape.queries * 2) * shape.width;
}

// Decides which attention probabilities dropout sets to zero.
class Drops {
 public:
  Drops(const Dropout& dropout, const AttentionShape& shape) : dropout_(dropout), shape_(shape) {}
  bool any() const { return dropout_.probability > 0; }
  std::uint64_t index(std::int64_t row, std::int64_t head) const {  // dropout index of the row's probability for the first
                                                                    // key of the sequence
    const std::int64_t whole = dropout_.tokens.sample(row) * shape_.all_heads + shape_.first_head + head;
    const std::int64_t n = dropout_.tokens.sequence;
    return static_cast<std::uint64_t>((whole * n + dropout_.tokens.place(row)) * n);
  }
  void factors(std::uint64_t first, float (&factor)[side]) const;  // computes 0 or 1/(1 − p) for each of 64 indices

 private:
  const Dropout& dropout_;
  const AttentionShape& shape_;
};

// The rows of a query tile, each with its sums over the keys so far. The sums are relative to the row's highest score so
// far.
struct QueryRows {
  explicit QueryRows(std::int64_t width) : out(side * round_up(width, lanes)) {}
  Floats out;
  float highest[side], sum[side];
  std::int64_t first[side], last[side];  // the row attends to the keys in [`first`, `last`); both bounds are 0 for a padding
                                         // row
  std::uint64_t dropped[side] = {};      // Drops::index of the row for the first key of the call
};

struct QueryTile : QueryRows {
  explicit QueryTile(std::int64_t width) : QueryRows(width), q(side * round_up(width, lanes)) {}
  template <class T>
  void load(std::int64_t r, const T* query, std::int64_t stride, std::int64_t width) {
    widen(query, stride, 1, width, 1 / std::sqrt(static_cast<float>(width)), q.data() + r * round_up(width, lanes));
  }
  Floats q;
};

struct KeyTiles {
  KeyTiles(std::int64_t count, std::int64_t width)
      : keys(round_up(count, side) * round_up(width, lanes)), transposed(keys), values(keys) {}
  template <class T>
  void load(const T* key, std::int64_t stride, std::int64_t count, std::int64_t width) {
    widen(key, stride, count, width, 1, keys.data());
    transpose_tiles(keys.data(), count, round_up(width, lanes), transposed.data());
    widen(key + width, stride, count, width, 1, values.data());
  }
  Floats keys, transposed, values;
};

// Loops over all tiles with keys that any of the queries attends to. Adds the contributions of these keys to the sums of the
// queries.
void attend(QueryTile& queries, std::int64_t width, const KeyTiles& keys, const Drops& drops);

// Computes the attention of one group's queries in one sample. Row `n` of the query tiles is the token `n % tokens` of the
// query head `n / tokens`. A few tokens of many heads therefore also fill a tile. The pointer `lse` can be null unless the
// call continues earlier results.
template <class T, class S, class Keys, class Queries>
void attend_group(const AttentionInput& in, std::int64_t sample, std::int64_t group, const Keys& keys, const Drops& drops,
                  Queries& queries, S* out, float* lse) {
  const AttentionShape& shape = in.shape;
  const Tokens& tokens = in.dropout.tokens;
  const std::int64_t width = shape.width, padded = round_up(width, lanes), all = shape.queries * tokens.tokens;
  const T* const qkv = in.qkv.values<T>().data();
  for (std::int64_t first = 0; first < all; first += side) {
    const auto each = [&](auto&& f) {  // f(row of the tile, row of the tensors, head)
      for (std::int64_t r = 0; r < std::min(side, all - first); ++r)
        f(r, sample * tokens.tokens + (first + r) % tokens.tokens, group * shape.queries + (first + r) / tokens.tokens);
    };
    std::fill_n(queries.first, side, 0);
    std::fill_n(queries.last, side, 0);
    std::fill_n(queries.highest, side, -std::numeric_limits<float>::infinity());
    std::fill_n(queries.sum, side, 0.0f);
    std::fill_n(queries.out.data(), side * padded, 0.0f);
    each([&](std::int64_t r, std::int64_t row, std::int64_t head) {
      queries.load(r, qkv + first_query(shape, row, head), shape.columns(), width);
      const Sight sight = sight_of(row, tokens, in.keys);
      queries.first[r] = sight.first;
      queries.last[r] = sight.last;
      queries.dropped[r] = drops.any() ? drops.index(row, head) + static_cast<std::uint64_t>(in.keys.first_token) : 0;
      const std::int64_t place = row * shape.heads() + head;
      if (!in.continues || !std::isfinite(lse[place])) return;
      queries.highest[r] = lse[place];
      queries.sum[r] = 1;
      widen(out + place * width, shape.heads() * width, 1, width, 1, queries.out.data() + r * padded);
    });
    attend(queries, width, keys, drops);
    each([&](std::int64_t r, std::int64_t row, std::int64_t head) {
      const std::int64_t place = row * shape.heads() + head;
      const float sum = queries.sum[r];  // 0 if the row has not attended to any key yet
      narrow(queries.out.data() + r * padded, sum > 0 ? 1 / sum : 0, 1, width, out + place * width, shape.heads() * width);
      if (lse) lse[place] = sum > 0 ? queries.highest[r] + math::log(sum) : queries.highest[r];
    });
  }
}

// Runs body(sample, group, state) for all samples and groups on the queue's threads. Each thread makes its own state with
// make().
template <class Make, class Body>
void for_each_group(const AttentionInput& in, const Queue& queue, Make&& make, Body&& body) {
  const std::int64_t groups = in.shape.groups;
  parallel_for(queue.threads, in.qkv.dim(0) / in.dropout.tokens.tokens * groups, [&](std::int64_t first, std::int64_t last) {
    auto state = make();
    for (std::int64_t pair = first; pair < last; ++pair) body(pair / groups, pair % groups, state);
  });
}

// The complete forward pass. Each thread calls Keys(count, width) to allocate the keys of one group, and make_queries() to
// allocate one query tile.
template <class T, class S, class Keys, class Make>
void forward(const AttentionInput& in, const Tensor& out, const Tensor& lse, const Queue& queue, Make&& make_queries) {
  const T* const keys = in.keys.tensor.values<T>().data();
  const std::int64_t width = in.shape.width;
  const Drops drops(in.dropout, in.shape);
  for_each_group(
      in, queue, [&] { return std::pair(Keys(in.keys.count, width), make_queries()); },
      [&](std::int64_t sample, std::int64_t group, auto& state) {
        auto& [tiles, queries] = state;
        tiles.load(keys + first_key(in.keys, sample, group), in.keys.row, in.keys.count, width);
        attend_group<T>(in, sample, group, tiles, drops, queries, out.values<S>().data(),
                        lse ? lse.values<float>().data() : nullptr);
      });
}

}  // namespace chorale::attention
