// The backward pass of one group, tile by tile. With P = exp(Q·Kᵀ − lse) recomputed, f the dropout factors and D = Σ do·o
// per row:
//
//   dS = P ∘ (f ∘ (dO·Vᵀ) − D)        dQ += dS·K        dK += dSᵀ·Q        dV += (f ∘ P)ᵀ·dO
//
// These are five matrix products; the forward pass has two. Keys, values and their gradients stay in memory for all query
// heads of the group. Q is scaled by 1/√width when it is loaded, so dK needs no scaling; dQ is scaled when it is stored.
#include "src/base/parallel.hpp"
#include "src/math/attention_tiles.hpp"
#include "src/math/device_kernels.hpp"
#include "src/math/reference/attention.hpp"

namespace chorale {
namespace attention {
namespace {

// The matrices of one group, [tokens, width] with padding unless noted.
struct Gradients {
  Gradients(std::int64_t tokens, std::int64_t width)
      : tokens(tokens),
        width(width),
        count(up_to(tokens, side)),
        row(up_to(width, lanes)),
        keys(tokens, width),
        turned_values(count * row),
        q(count * row),
        dout(count * row),
        dq(count * row),
        dk(count * row),
        dv(count * row),
        lse(count),
        both(count) {}
  std::int64_t tokens, width, count, row;
  KeyTiles keys;
  Floats turned_values;  // tiles of Vᵀ, [width, 64]
  Floats q, dout, dq, dk, dv;
  Floats lse, both;                        // one number per query; `both` holds Σ do·o
  Floats p{side * side}, ds{side * side};  // one tile, [query, key]
};

float dot(const float* a, const float* b, std::int64_t row) {
  float sum[lanes] = {};
  for (std::int64_t i = 0; i < row; i += lanes)
    for (std::int64_t l = 0; l < lanes; ++l) sum[l] = __builtin_fmaf(a[i + l], b[i + l], sum[l]);
  return across(sum, [](float x, float y) { return x + y; });
}

// Turns the scores and dP of one row into f∘P and dS; writes zeros where the query does not see the key.
void differentiate(float lse, float both, int seen, std::int64_t columns, const float (&factor)[side], float* p, float* ds) {
  for (int j = 0; j < static_cast<int>(columns); ++j) {
    const float probability = j < seen ? math::exp(p[j] - lse) : 0.0f;
    const float gradient = j < seen ? probability * __builtin_fmaf(factor[j], ds[j], -both) : 0.0f;
    p[j] = factor[j] * probability;
    ds[j] = gradient;
  }
}

// Adds one tile's contributions to dQ, dK and dV: queries from first_query, keys from first_key. `start` is the sample's
// first row.
void tile_backward(Gradients& g, std::int64_t first_query, std::int64_t first_key, std::int64_t start, std::int64_t head,
                   const Drops& drops) {
  const std::int64_t row = g.row, keys = first_key * row, last = std::min(side, g.tokens - first_query);
  const bool diagonal = first_query == first_key;
  float factor[side];
  std::fill_n(factor, side, 1.0f);
  for (std::int64_t r = 0; r < last; r += tile::rows) {
    const std::int64_t query = first_query + r, depth = diagonal ? std::min(r + tile::rows, last) : side;
    const std::int64_t columns = up_to(depth, lanes);
    float *p = g.p.data() + r * side, *ds = g.ds.data() + r * side;
    tile::product<false>(columns, g.width, {g.q.data() + query * row, row, 1}, {g.keys.transposed.data() + keys, side},
                         {p, side});
    tile::product<false>(columns, g.width, {g.dout.data() + query * row, row, 1}, {g.turned_values.data() + keys, side},
                         {ds, side});
    for (std::int64_t i = 0; i < tile::rows; ++i) {
      const std::int64_t here = query + i, seen = here < g.tokens ? std::min(here - first_key + 1, columns) : 0;
      if (drops.any() && seen > 0)
        drops.factors(drops.index(start + here, head) + static_cast<std::uint64_t>(first_key), factor);
      differentiate(g.lse.data()[here], g.both.data()[here], static_cast<int>(seen), columns, factor, p + i * side,
                    ds + i * side);
    }
    tile::product<true>(row, depth, {ds, side, 1}, {g.keys.keys.data() + keys, row}, {g.dq.data() + query * row, row});
  }
  for (std::int64_t k = 0; k < (diagonal ? last : side); k += tile::rows) {
    const std::int64_t first = diagonal ? k : 0, depth = last - first,
                       cell = first * side + k;  // queries before k do not see key k
    const std::int64_t queries = (first_query + first) * row, to = keys + k * row;
    tile::product<true>(row, depth, {g.p.data() + cell, 1, side}, {g.dout.data() + queries, row}, {g.dv.data() + to, row});
    tile::product<true>(row, depth, {g.ds.data() + cell, 1, side}, {g.q.data() + queries, row}, {g.dk.data() + to, row});
  }
}

template <class T>
void backward_group(const T* dout, const T* qkv, const T* out, const float* lse, const AttentionShape& shape,
                    std::int64_t start, std::int64_t group, const Drops& drops, Gradients& g, T* dqkv) {
  const std::int64_t width = g.width, columns = shape.columns(), outs = shape.heads() * width;
  const std::int64_t units = start * columns + group * (shape.queries + 2) * width, key = units + shape.queries * width;
  const float scale = 1 / std::sqrt(static_cast<float>(width));
  g.keys.load(qkv + key, qkv + key + width, columns, g.tokens, width);
  transpose_tiles(g.keys.values.data(), g.tokens, g.row, g.turned_values.data());
  std::fill_n(g.dk.data(), g.count * g.row, 0.0f);
  std::fill_n(g.dv.data(), g.count * g.row, 0.0f);
  for (std::int64_t query = 0; query < shape.queries; ++query) {
    const std::int64_t head = group * shape.queries + query, place = (start * shape.heads() + head) * width;
    widen(qkv + units + query * width, columns, g.tokens, width, scale, g.q.data());
    widen(dout + place, outs, g.tokens, width, 1, g.dout.data());
    // g.dq first holds `out`, for the sums Σ do·o. Then it is cleared for dQ.
    widen(out + place, outs, g.tokens, width, 1, g.dq.data());
    for (std::int64_t t = 0; t < g.tokens; ++t) {
      g.both.data()[t] = dot(g.dout.data() + t * g.row, g.dq.data() + t * g.row, g.row);
      g.lse.data()[t] = lse[(start + t) * shape.heads() + head];
    }
    std::fill_n(g.dq.data(), g.count * g.row, 0.0f);
    for (std::int64_t first_key = 0; first_key < g.tokens; first_key += side)
      for (std::int64_t first_query = first_key; first_query < g.tokens; first_query += side)
        tile_backward(g, first_query, first_key, start, head, drops);
    narrow(g.dq.data(), scale, g.tokens, width, dqkv + units + query * width, columns);
  }
  narrow(g.dk.data(), 1, g.tokens, width, dqkv + key, columns);
  narrow(g.dv.data(), 1, g.tokens, width, dqkv + key + width, columns);
}

}  // namespace
}  // namespace attention

void attention_backward(const Tensor& dout, const Tensor& qkv, const Tensor& out, const Tensor& lse,
                        const AttentionShape& shape, const Dropout& dropout, const Tensor& dqkv, const Queue& queue) {
  attention::check(qkv, shape, dropout, out, lse);
  attention::check(dqkv, shape, dropout, dout, lse);
  require(dqkv.dtype() == qkv.dtype() && dqkv.count() == qkv.count(),
          "attention expects a gradient with the type and shape of its input, {} {}, got {} {}", name_of(qkv.dtype()),
          to_string(qkv.shape()), name_of(dqkv.dtype()), to_string(dqkv.shape()));
  constexpr double products = 2.5;  // five products instead of two
  if (qkv.phantom())
    return queue.note(Work::attention, products * attention::flops(qkv.dim(0), shape, dropout.tokens.tokens));
  if (queue.device) return queue.device->attention_backward(dout, qkv, out, lse, shape, dropout, dqkv, queue);
  const std::int64_t rows = qkv.dim(0), tokens = dropout.tokens.tokens;
  visit_floating(qkv.dtype(), [&]<class T>(Type<T>) {
    const T *above = dout.values<T>().data(), *from = qkv.values<T>().data(), *made = out.values<T>().data();
    T* to = dqkv.values<T>().data();
    if constexpr (std::is_same_v<T, double>) {
      reference::attention_backward(above, from, made, lse.values<double>().data(), rows, shape, dropout, to);
    } else {
      const float* logs = lse.values<float>().data();
      parallel_for(queue.threads, rows / tokens * shape.groups, [&](std::int64_t first, std::int64_t last) {
        const attention::Drops drops(dropout, shape);
        attention::Gradients gradients(tokens, shape.width);
        for (std::int64_t pair = first; pair < last; ++pair)
          attention::backward_group(above, from, made, logs, shape, pair / shape.groups * tokens, pair % shape.groups, drops,
                                    gradients, to);
      });
    }
  });
}

}  // namespace chorale
