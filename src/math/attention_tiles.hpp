// Parts that the host's attention kernels share: f32 sequences cut into tiles of 64 tokens, dropout factors for a row of
// probabilities, and one group's forward pass over tiled keys.
//
//                     keys 0–63    64–127
//   queries 0–63      ░            ·            tiles above the diagonal are skipped; in tiles on the diagonal, each
//          64–127     ▓            ░            block of 8 queries stops at the last key that its last query sees
//
// Rows are padded with zeros to 16 floats and tiles to 64 rows, so products need no edge cases.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "src/math/attention.hpp"
#include "src/math/tile.hpp"
#include "src/math/vector_math.hpp"

namespace chorale::attention {

inline constexpr std::int64_t side = 64, lanes = 16;  // rows and columns of a tile; accumulators of a sum along a row
inline std::int64_t up_to(std::int64_t count, std::int64_t multiple) { return (count + multiple - 1) / multiple * multiple; }

// Reduces the sixteen values of `lane` to one, always in the same order.
template <class Combine>
float across(float (&lane)[lanes], Combine&& combine) {
  for (std::int64_t half = lanes / 2; half > 0; half /= 2)
    for (std::int64_t l = 0; l < half; ++l) lane[l] = combine(lane[l], lane[l + half]);
  return lane[0];
}

// A zeroed array of floats, aligned to cache lines.
class Floats {
 public:
  explicit Floats(std::int64_t count) : lines_(static_cast<std::size_t>(up_to(count, lanes) / lanes)) {}
  float* data() { return lines_.data()->values; }
  const float* data() const { return lines_.data()->values; }

 private:
  struct alignas(64) Line {
    float values[lanes] = {};
  };
  std::vector<Line> lines_;
};

// widen copies `count` vectors, `stride` elements apart, into the rows of a matrix of floats; narrow copies rows back.
template <class T>
void widen(const T* from, std::int64_t stride, std::int64_t count, std::int64_t width, float scale, float* to) {
  const std::int64_t row = up_to(width, lanes);
  for (std::int64_t r = 0; r < count; ++r)
    for (std::int64_t i = 0; i < width; ++i) to[r * row + i] = scale * static_cast<float>(from[r * stride + i]);
}
template <class T>
void narrow(const float* from, float scale, std::int64_t count, std::int64_t width, T* to, std::int64_t stride) {
  const std::int64_t row = up_to(width, lanes);
  for (std::int64_t r = 0; r < count; ++r)
    for (std::int64_t i = 0; i < width; ++i) to[r * stride + i] = static_cast<T>(scale * from[r * row + i]);
}

// Transposes each tile of 64 rows into a matrix [row, 64].
void transpose_tiles(const float* from, std::int64_t count, std::int64_t row, float* to);

// Check the shapes and types of the arguments.
double flops(std::int64_t rows, const AttentionShape& shape, std::int64_t tokens);  // of the forward pass
void check(const Tensor& qkv, const AttentionShape& shape, const Tensor& out);
void check(const Tensor& qkv, const AttentionShape& shape, const Dropout& dropout, const Tensor& out, const Tensor& lse);

// Decides which attention probabilities dropout sets to zero.
class Drops {
 public:
  Drops(const Dropout& dropout, const AttentionShape& shape) : dropout_(dropout), shape_(shape) {}
  bool any() const { return dropout_.probability > 0; }
  std::uint64_t index(std::int64_t row, std::int64_t head) const {  // the index of the row's probability for key 0
    const std::int64_t whole = dropout_.tokens.sample(row) * shape_.all_heads + shape_.first_head + head;
    const std::int64_t n = dropout_.tokens.sequence;
    return static_cast<std::uint64_t>((whole * n + dropout_.tokens.position(row)) * n);
  }
  void factors(std::uint64_t first, float (&factor)[side]) const;  // 0 or 1/(1 − p) for each of 64 indices

 private:
  const Dropout& dropout_;
  const AttentionShape& shape_;
};

// A tile of query rows, with each row's sums over the keys so far. The sums are relative to the highest score so far.
struct QueryTile {
  explicit QueryTile(std::int64_t width) : q(side * up_to(width, lanes)), out(side * up_to(width, lanes)) {}
  Floats q, out;
  float highest[side], sum[side];
  std::int64_t seen[side];      // how many keys the row sees; 0 for a padding row
  std::uint64_t dropped[side];  // Drops::index of the row
};

struct KeyTiles {
  KeyTiles(std::int64_t count, std::int64_t width)
      : keys(up_to(count, side) * up_to(width, lanes)), transposed(keys), values(keys) {}
  template <class T>
  void load(const T* key, const T* value, std::int64_t stride, std::int64_t count, std::int64_t width) {
    widen(key, stride, count, width, 1, keys.data());
    transpose_tiles(keys.data(), count, up_to(width, lanes), transposed.data());
    widen(value, stride, count, width, 1, values.data());
  }
  Floats keys, transposed, values;
};

// Goes over all tiles with keys that any of the queries sees, and adds the contributions of these keys to the queries' sums.
void attend(QueryTile& queries, std::int64_t width, const KeyTiles& keys, const Drops& drops);

// Attention of one group's queries in one sample: `tokens` rows of qkv from `row` on, preceded by `past` cached tokens. Row
// n of the query tiles is token n % tokens of query head n / tokens, so a few tokens of many heads also fill a tile. The
// pointer lse may be null.
template <class T>
void attend_group(const T* qkv, std::int64_t row, std::int64_t tokens, std::int64_t past, const AttentionShape& shape,
                  std::int64_t group, const KeyTiles& keys, const Drops& drops, QueryTile& queries, T* out, float* lse) {
  const std::int64_t width = shape.width, all = shape.queries * tokens;
  const float scale = 1 / std::sqrt(static_cast<float>(width));
  for (std::int64_t first = 0; first < all; first += side) {
    const auto each = [&](auto&& f) {  // f(row of the tile, row of the tensors, head)
      for (std::int64_t r = 0; r < std::min(side, all - first); ++r)
        f(r, row + (first + r) % tokens, group * shape.queries + (first + r) / tokens);
    };
    std::fill_n(queries.seen, side, 0);
    each([&](std::int64_t r, std::int64_t from, std::int64_t head) {
      const T* q = qkv + from * shape.columns() + (head + 2 * group) * width;
      widen(q, 0, 1, width, scale, queries.q.data() + r * up_to(width, lanes));
      queries.seen[r] = past + (from - row) + 1;
      queries.dropped[r] = drops.any() ? drops.index(from, head) : 0;
    });
    attend(queries, width, keys, drops);
    each([&](std::int64_t r, std::int64_t to, std::int64_t head) {
      const std::int64_t place = to * shape.heads() + head;
      narrow(queries.out.data() + r * up_to(width, lanes), 1 / queries.sum[r], 1, width, out + place * width, 0);
      if (lse) lse[place] = queries.highest[r] + math::log(queries.sum[r]);
    });
  }
}

}  // namespace chorale::attention
