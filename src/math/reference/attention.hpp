// Causal attention straight from its formulas: a query's scores, their softmax, the weighted average of the values. T is
// float or double.
//
//   s_j = q·k_j/√width,  j ≤ query        p = softmax(s)        o = Σ_j f_j·p_j·v_j        lse = log Σ_j exp(s_j)
//
// f_j is the dropout factor of p_j: 0 or 1/(1 − dropout probability). Backward, with dp_j = f_j·(do·v_j):
//
//   ds_j = p_j·(dp_j − Σ p·dp) = p_j·(dp_j − do·o)   dq = Σ_j ds_j·k_j/√width    dk_j += ds_j·q/√width    dv_j += f_j·p_j·do
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "src/math/attention.hpp"

namespace chorale::reference {

// Offsets of a row's vectors. In qkv, each group holds its queries, then its key and its value.
struct AttentionPlaces {
  AttentionShape shape;
  std::int64_t query(std::int64_t row, std::int64_t group, std::int64_t query) const {
    return row * shape.columns() + (group * (shape.queries + 2) + query) * shape.width;
  }
  std::int64_t key(std::int64_t row, std::int64_t group) const { return query(row, group, shape.queries); }
  std::int64_t value(std::int64_t row, std::int64_t group) const { return query(row, group, shape.queries + 1); }
  std::int64_t out(std::int64_t row, std::int64_t group, std::int64_t query) const {
    return ((row * shape.groups + group) * shape.queries + query) * shape.width;
  }
};

template <class T>
T dot(const T* a, const T* b, std::int64_t width) {
  T sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += a[i] * b[i];
  return sum;
}

// Replaces the scores of one query by their softmax; returns the log of the sum of exponentials.
template <class T>
T softmax(std::vector<T>& row) {
  const T highest = *std::max_element(row.begin(), row.end());
  T sum = 0;
  for (T& s : row) sum += s = std::exp(s - highest);
  for (T& s : row) s /= sum;
  return highest + std::log(sum);
}

template <class T>
T attention_factor(const Dropout& dropout, const AttentionShape& shape, std::int64_t head, std::int64_t row,
                   std::int64_t key) {
  if (dropout.probability == 0) return 1;
  const std::int64_t whole = dropout.tokens.sample(row) * shape.all_heads + shape.first_head + head;
  const std::int64_t n = dropout.tokens.sequence;
  const auto index = static_cast<std::uint64_t>((whole * n + dropout.tokens.position(row)) * n + key);
  return dropout.keeps(dropout.random.bits(index)) ? T(1 / (1 - dropout.probability)) : T(0);
}

// Calls f(group, query, row, first row of its sample) for each query of each head.
template <class F>
void for_each_query(std::int64_t rows, std::int64_t tokens, const AttentionShape& shape, F&& f) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t group = 0; group < shape.groups; ++group)
      for (std::int64_t query = 0; query < shape.queries; ++query) f(group, query, row, row / tokens * tokens);
}

template <class T>
void attention_forward(const T* qkv, std::int64_t rows, const AttentionShape& shape, const Dropout& dropout, T* out,
                       T* lse) {
  const AttentionPlaces at{shape};
  const T scale = 1 / std::sqrt(static_cast<T>(shape.width));
  for_each_query(rows, dropout.tokens.tokens, shape, [&](auto group, auto query, auto row, auto first) {
    std::vector<T> p;
    for (std::int64_t other = first; other <= row; ++other)
      p.push_back(scale * dot(qkv + at.query(row, group, query), qkv + at.key(other, group), shape.width));
    const std::int64_t head = group * shape.queries + query;
    lse[row * shape.heads() + head] = softmax(p);
    T* o = out + at.out(row, group, query);
    std::fill_n(o, shape.width, T(0));
    for (std::int64_t other = first; other <= row; ++other) {
      const T weight =
          p[static_cast<std::size_t>(other - first)] * attention_factor<T>(dropout, shape, head, row, other - first);
      for (std::int64_t i = 0; i < shape.width; ++i) o[i] += weight * qkv[at.value(other, group) + i];
    }
  });
}

template <class T>
void attention_backward(const T* dout, const T* qkv, const T* out, const T* lse, std::int64_t rows,
                        const AttentionShape& shape, const Dropout& dropout, T* dqkv) {
  const AttentionPlaces at{shape};
  const T scale = 1 / std::sqrt(static_cast<T>(shape.width));
  std::fill_n(dqkv, rows * shape.columns(), T(0));
  for_each_query(rows, dropout.tokens.tokens, shape, [&](auto group, auto query, auto row, auto first) {
    const T* q = qkv + at.query(row, group, query);
    const T* here = dout + at.out(row, group, query);
    const std::int64_t head = group * shape.queries + query;
    const T both = dot(here, out + at.out(row, group, query), shape.width);
    for (std::int64_t other = first; other <= row; ++other) {
      const T* k = qkv + at.key(other, group);
      const T p = std::exp(scale * dot(q, k, shape.width) - lse[row * shape.heads() + head]);
      const T factor = attention_factor<T>(dropout, shape, head, row, other - first);
      const T ds = scale * p * (factor * dot(here, qkv + at.value(other, group), shape.width) - both);
      for (std::int64_t i = 0; i < shape.width; ++i) {
        dqkv[at.query(row, group, query) + i] += ds * k[i];
        dqkv[at.key(other, group) + i] += ds * q[i];
        dqkv[at.value(other, group) + i] += factor * p * here[i];
      }
    }
  });
}

// `samples` samples of `tokens` new rows each; the caches already hold the keys and values of the new rows.
template <class T>
void attention_cached(const T* qkv, std::int64_t samples, std::int64_t tokens, const AttentionShape& shape, const T* keys,
                      const T* values, std::int64_t capacity, std::int64_t past, T* out) {
  const AttentionPlaces at{shape};
  const T scale = 1 / std::sqrt(static_cast<T>(shape.width));
  for_each_query(samples * tokens, tokens, shape, [&](auto group, auto query, auto row, auto first) {
    const auto cached = [&](std::int64_t token) {
      return ((row / tokens * capacity + token) * shape.groups + group) * shape.width;
    };
    const std::int64_t seen = past + (row - first) + 1;
    std::vector<T> p;
    for (std::int64_t other = 0; other < seen; ++other)
      p.push_back(scale * dot(qkv + at.query(row, group, query), keys + cached(other), shape.width));
    softmax(p);
    T* o = out + at.out(row, group, query);
    std::fill_n(o, shape.width, T(0));
    for (std::int64_t other = 0; other < seen; ++other)
      for (std::int64_t i = 0; i < shape.width; ++i) o[i] += p[static_cast<std::size_t>(other)] * values[cached(other) + i];
  });
}

}  // namespace chorale::reference
