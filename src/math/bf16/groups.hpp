// The matrices of attention in bf16, stored as 32-bit words of two elements (products.hpp), and the memory layouts of these
// matrices. Scores, out and dQ are computed in transposed form, with queries as columns:
//
//   Sᵀ = K·Qᵀ        a vector register holds the scores of 16 queries, so maxima and sums over keys need no operation
//   Oᵀ += Vᵀ·Pᵀ      across lanes, and Pᵀ becomes a right operand when two rows at a time are rounded
//
// The backward pass, with D = Σ do·o per query and `scale` = 1/√width, the scale of the scores:
//
//   dPᵀ = V·dOᵀ      dSᵀ = scale·Pᵀ ∘ (f ∘ dPᵀ − D)      dQᵀ += Kᵀ·dSᵀ      dK += dSᵀ·Q      dV += (f ∘ Pᵀ)·dO
//
// A word holds two elements that are neighbors along the summed dimension of a product, so some matrices are needed in two
// layouts:
//
//   rows      [n, width/2]         two neighbors in a row
//   turned    [width/2, 64]        the transpose of `rows`, tile by tile of 64 rows
//   paired    [n/2, width]         the same column of two rows
//   columns   [width, 32]          the transpose of `paired`, tile by tile of 64 rows
//
// P and dS are rounded to bf16. Q is multiplied unscaled, and the scale is applied to the scores in f32.
#pragma once
#include <cstring>

#include "src/base/round_up.hpp"
#include "src/math/attention_gradients.hpp"
#include "src/math/bf16/products.hpp"

namespace chorale::attention {

using bf16_products::Word;
using WordLines = Lines<Word>;
inline constexpr std::int64_t pairs = side / 2;  // pairs of rows in a tile
inline std::int64_t words_of(std::int64_t width) { return round_up(width, 2 * lanes) / 2; }

struct Bf16Keys;
struct Bf16Queries;
struct Bf16Gradients;

// The kernels of one engine.
struct Bf16Kernels {
  const char* name;
  // The bf16 versions of attend() and tile_backward().
  void (*attend)(Bf16Queries& queries, std::int64_t width, const Bf16Keys& keys, const Drops& drops);
  void (*tile_backward)(Bf16Gradients& g, std::int64_t first_query, std::int64_t rows, std::int64_t first_key,
                        const Drops& drops, const KeyGradients& sums);
};

// Copies `count` vectors, which start `stride` elements apart, into rows of words. Does not write the padding.
inline void copy_rows(const bf16* from, std::int64_t stride, std::int64_t count, std::int64_t width, Word* to) {
  const std::int64_t row = words_of(width);
  for (std::int64_t r = 0; r < count; ++r) {
    const bf16* const vector = from + r * stride;
    fetch_ahead(vector, stride, width);
    Word* const words = to + r * row;
    std::int64_t i = 0;
    for (; i + lanes <= width; i += lanes) std::memcpy(words + i / 2, vector + i, lanes * sizeof(bf16));
    std::memcpy(words + i / 2, vector + i, static_cast<std::size_t>(width - i) * sizeof(bf16));
  }
}

// Converts the rows of a tile to the layout `paired`. `row` is the padded width.
inline void pair_rows(const Word* rows, std::int64_t words, std::int64_t row, Word* paired) {
  for (std::int64_t r = 0; r < pairs; ++r) {
    const Word *even = rows + 2 * r * words, *odd = even + words;
    Word* const to = paired + r * row;
    for (std::int64_t w = 0; w < row / 2; ++w) {
      to[2 * w] = (even[w] & 0xffffu) | odd[w] << 16;
      to[2 * w + 1] = even[w] >> 16 | (odd[w] & 0xffff0000u);
    }
  }
}

// Returns Σ a·b over a row, in f32.
template <class S>
float dot_rows(const bf16* a, const S* b, std::int64_t width) {
  float sum[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= width; i += lanes)
#pragma GCC unroll 1  // if this loop is unrolled, GCC does not vectorize it
    for (std::int64_t l = 0; l < lanes; ++l)
      sum[l] = __builtin_fmaf(static_cast<float>(a[i + l]), static_cast<float>(b[i + l]), sum[l]);
  for (std::int64_t l = 0; i + l < width; ++l)
    sum[l] = __builtin_fmaf(static_cast<float>(a[i + l]), static_cast<float>(b[i + l]), sum[l]);
  return fold_halves<lanes>(sum, std::plus<>());
}

struct Bf16Keys {
  Bf16Keys(std::int64_t count, std::int64_t width)
      : keys(round_up(count, side) * words_of(width)),
        values(keys),
        columns(round_up(count, side) * round_up(width, lanes) / 2),
        paired(pairs * round_up(width, lanes)) {}

  void load(const bf16* key, std::int64_t stride, std::int64_t count, std::int64_t width) {  // for the forward pass
    load(key, stride, count, width, values);
  }
  // Also builds the layout `columns` of `left`, which is `keys` or `values`. `columns` is the left operand of the product
  // with P or dS.
  void load(const bf16* key, std::int64_t stride, std::int64_t count, std::int64_t width, const WordLines& left) {
    const std::int64_t row = round_up(width, lanes), words = words_of(width);
    copy_rows(key, stride, count, width, keys.data());
    copy_rows(key + width, stride, count, width, values.data());
    for (std::int64_t first = 0; first < count; first += side) {
      pair_rows(left.data() + first * words, words, row, paired.data());
      transpose(paired.data(), pairs, row, columns.data() + first / 2 * row);
    }
  }
  WordLines keys, values, columns, paired;  // `paired` holds one tile
};

struct Bf16Queries : QueryRows {
  Bf16Queries(const Bf16Kernels& kernels, std::int64_t width)
      : QueryRows(width),
        kernels(kernels),
        rows(side * words_of(width)),
        turned(rows),
        turned_out(side * round_up(width, lanes)) {}
  void load(std::int64_t r, const bf16* query, std::int64_t stride, std::int64_t width) {
    copy_rows(query, stride, 1, width, rows.data() + r * words_of(width));
  }
  const Bf16Kernels& kernels;
  WordLines rows, turned;
  Floats turned_out;
};
inline void attend(Bf16Queries& queries, std::int64_t width, const Bf16Keys& keys, const Drops& drops) {
  queries.kernels.attend(queries, width, keys, drops);
}

struct Bf16Gradients : GroupRows {
  Bf16Gradients(const Bf16Kernels& kernels, std::int64_t queries, std::int64_t key_count, std::int64_t width)
      : GroupRows(queries, key_count, width),
        kernels(kernels),
        words(words_of(width)),
        keys(key_count, width),
        turned_q(round_up(queries, side) * words),
        turned_dout(turned_q),
        paired_q(round_up(queries, side) * row / 2),
        paired_dout(paired_q),
        turned_dq(round_up(queries, side) * row),
        rows(side * words),
        float_rows(side * row) {}

  void load_keys(const bf16* key, std::int64_t stride) { keys.load(key, stride, key_count, width, keys.keys); }
  template <class S>
  void load_head(const bf16* query, std::int64_t stride, const bf16* gradient, const S* out, std::int64_t outs) {
    for (std::int64_t t = 0; t < queries; ++t) {
      fetch_ahead(gradient + t * outs, outs, width);
      fetch_ahead(out + t * outs, outs, width);
      both.data()[t] = dot_rows(gradient + t * outs, out + t * outs, width);
    }
    load(query, stride, turned_q, paired_q);
    load(gradient, outs, turned_dout, paired_dout);
  }
  void clear_dq() { std::fill_n(turned_dq.data(), round_up(queries, side) * row, 0.0f); }
  template <class S>
  void load_dq(const S* from, std::int64_t stride) {
    each_tile([&](std::int64_t first, std::int64_t count) {
      widen(from + first * stride, stride, count, width, 1, float_rows.data());
      transpose(float_rows.data(), side, row, turned_dq.data() + first * row);
    });
  }
  template <class S>
  void store_dq(S* to, std::int64_t stride) {
    each_tile([&](std::int64_t first, std::int64_t count) {
      transpose(turned_dq.data() + first * row, row, side, float_rows.data());
      narrow(float_rows.data(), 1, count, width, to + first * stride, stride);
    });
  }

  const Bf16Kernels& kernels;
  std::int64_t words;
  Bf16Keys keys;  // includes the layout `columns` of the keys
  WordLines turned_q, turned_dout, paired_q, paired_dout;
  Floats turned_dq;                                                                // one tile after another, each [width,
                                                                                   // 64]
  WordLines rows;                                                                  // one tile
  Floats float_rows;                                                               // one tile
  Floats p{side * side}, ds{side * side};                                          // one tile, [key, query]
  WordLines p_rows{side * pairs}, ds_rows{side * pairs}, paired_ds{pairs * side};  // p and ds as words

 private:
  template <class F>
  void each_tile(F&& f) {  // f(the tile's first query, its number of queries)
    for (std::int64_t first = 0; first < queries; first += side) f(first, std::min(side, queries - first));
  }
  void load(const bf16* from, std::int64_t stride, WordLines& turned, WordLines& paired) {
    each_tile([&](std::int64_t first, std::int64_t count) {
      copy_rows(from + first * stride, stride, count, width, rows.data());
      // The padding of the last tile must be finite, because it is multiplied by zeros.
      std::fill_n(rows.data() + count * words, (side - count) * words, 0);
      transpose(rows.data(), side, words, turned.data() + first * words);
      pair_rows(rows.data(), words, row, paired.data() + first / 2 * row);
    });
  }
};
inline void tile_backward(Bf16Gradients& g, std::int64_t first_query, std::int64_t rows, std::int64_t first_key,
                          const Drops& drops, const KeyGradients& sums) {
  g.kernels.tile_backward(g, first_query, rows, first_key, drops, sums);
}

}  // namespace chorale::attention
