// Causal attention computed directly from its formulas: a query's scores, their softmax, and the weighted average of the
// values. T is float or double.
//
//   s_j = q·k_j/√width,  j visible        p = softmax(s)        o = Σ_j f_j·p_j·v_j        lse = log Σ_j exp(s_j)
//
// f_j is the dropout factor of p_j: 0 or 1/(1 − dropout probability). The backward pass, with dp_j = f_j·(do·v_j):
//
//   ds_j = p_j·(dp_j − Σ p·dp) = p_j·(dp_j − do·o)   dq = Σ_j ds_j·k_j/√width    dk_j += ds_j·q/√width    dv_j += f_j·p_j·do
//
// A call can continue from an earlier result (o, lse). It then weights the two partial results by their sums of
// exponentials:
//
//   lse = log(exp(lse₁) + exp(lse₂))      o = o₁·exp(lse₁ − lse) + o₂·exp(lse₂ − lse)
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/math/attention.hpp"

namespace chorale::reference {

template <class T>
T dot(const T* a, const T* b, std::int64_t width) {
  T sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += a[i] * b[i];
  return sum;
}

template <class T>
T attention_factor(const AttentionInput& in, std::int64_t head, std::int64_t row, std::int64_t key) {
  if (in.dropout.probability == 0) return 1;
  const Tokens& tokens = in.dropout.tokens;
  const std::int64_t whole = tokens.sample(row) * in.shape.all_heads + in.shape.first_head + head, n = tokens.sequence;
  const auto index = static_cast<std::uint64_t>((whole * n + tokens.place(row)) * n + in.keys.first_token + key);
  return in.dropout.keeps(in.dropout.random.bits(index)) ? T(1 / (1 - in.dropout.probability)) : T(0);
}

// Returns the offset of a key's vector in the rows of `keys`. The value directly follows the key.
inline std::int64_t key_at(const KeyRows& keys, std::int64_t sample, std::int64_t group, std::int64_t key) {
  return (keys.first_row + sample * keys.sample_rows + key) * keys.row + keys.offset + group * keys.group;
}

// Calls f(group, head, row, sample, first key, last key) for each query of each head. The query attends to the keys [first
// key, last key), where keys are numbered within the call.
template <class F>
void for_each_query(const AttentionInput& in, F&& f) {
  const Tokens& tokens = in.dropout.tokens;
  for (std::int64_t row = 0; row < in.qkv.dim(0); ++row) {
    const std::int64_t end = std::min(tokens.place(row) + 1 - in.keys.first_token, in.keys.count);
    const std::int64_t first = std::max<std::int64_t>(tokens.start(row) - in.keys.first_token, 0);
    for (std::int64_t head = 0; head < in.shape.heads(); ++head)
      f(head / in.shape.queries, head, row, row / tokens.tokens, first, end);
  }
}

inline std::int64_t query_at(const AttentionShape& shape, std::int64_t row, std::int64_t head) {
  return row * shape.columns() + (head + 2 * (head / shape.queries)) * shape.width;
}

template <class T>
void attention_forward(const AttentionInput& in, T* out, T* lse) {
  const T *qkv = in.qkv.values<T>().data(), *keys = in.keys.tensor.values<T>().data();
  const std::int64_t width = in.shape.width;
  const T scale = 1 / std::sqrt(static_cast<T>(width)), nothing = -std::numeric_limits<T>::infinity();
  for_each_query(in, [&](auto group, auto head, auto row, auto sample, auto first, auto end) {
    const std::int64_t place = row * in.shape.heads() + head;
    const T before = in.continues ? lse[place] : nothing;
    std::vector<T> s;
    for (std::int64_t key = first; key < end; ++key)
      s.push_back(scale * dot(qkv + query_at(in.shape, row, head), keys + key_at(in.keys, sample, group, key), width));
    T highest = before, sum = 0;
    for (const T score : s) highest = std::max(highest, score);
    for (const T score : s) sum += std::exp(score - highest);
    T* o = out + place * width;
    if (!in.continues) std::fill_n(o, width, T(0));
    if (highest == nothing) {  // no key so far
      if (lse) lse[place] = nothing;
      return;
    }
    const T earlier = before == nothing ? T(0) : std::exp(before - highest), all = sum + earlier;
    for (std::int64_t i = 0; i < width; ++i) o[i] *= earlier / all;
    for (std::int64_t key = first; key < end; ++key) {
      const T p = std::exp(s[static_cast<std::size_t>(key - first)] - highest) / all;
      const T weight = p * attention_factor<T>(in, head, row, key);
      for (std::int64_t i = 0; i < width; ++i) o[i] += weight * keys[key_at(in.keys, sample, group, key) + width + i];
    }
    if (lse) lse[place] = highest + std::log(all);
  });
}

template <class T>
void attention_backward(const AttentionInput& in, const T* dout, const T* out, const T* lse, T* dqkv, const KeyRows& dkeys) {
  const T *qkv = in.qkv.values<T>().data(), *keys = in.keys.tensor.values<T>().data();
  T* const dk = dkeys.tensor.values<T>().data();
  const std::int64_t width = in.shape.width, samples = in.qkv.dim(0) / in.dropout.tokens.tokens;
  const T scale = 1 / std::sqrt(static_cast<T>(width));
  for (std::int64_t sample = 0; sample < samples && !in.continues; ++sample)
    for (std::int64_t group = 0; group < in.shape.groups; ++group)
      for (std::int64_t key = 0; key < in.keys.count; ++key)
        std::fill_n(dk + key_at(dkeys, sample, group, key), 2 * width, T(0));
  for_each_query(in, [&](auto group, auto head, auto row, auto sample, auto first, auto end) {
    const T* q = qkv + query_at(in.shape, row, head);
    T* dq = dqkv + query_at(in.shape, row, head);
    const std::int64_t place = row * in.shape.heads() + head;
    const T* here = dout + place * width;
    const T both = dot(here, out + place * width, width);
    if (!in.continues) std::fill_n(dq, width, T(0));
    for (std::int64_t key = first; key < end; ++key) {
      const T *k = keys + key_at(in.keys, sample, group, key), *v = k + width;
      T* to = dk + key_at(dkeys, sample, group, key);
      const T p = std::exp(scale * dot(q, k, width) - lse[place]), factor = attention_factor<T>(in, head, row, key);
      const T ds = scale * p * (factor * dot(here, v, width) - both);
      for (std::int64_t i = 0; i < width; ++i) {
        dq[i] += ds * k[i];
        to[i] += ds * q[i];
        to[width + i] += factor * p * here[i];
      }
    }
  });
}

}  // namespace chorale::reference
