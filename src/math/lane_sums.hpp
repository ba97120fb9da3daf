// Sums over the elements of a row, in a fixed order. Element j is added to the partial sum (lane) with the index j % 32, so
// 32 sums run in parallel in vector registers. The results do not depend on the machine's vector width. At the end, the
// lanes are added by halves:
//   lane   0 … 15 │ 16 … 31        lane l += lane l + 16, then l + 8, l + 4, l + 2, l + 1
//              ▲──────┘
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>

namespace chorale {

inline constexpr std::int64_t sum_lanes = 32;

// Combines n lanes by halves. The arguments of combine(a, b) are floats or vectors of floats. With arrays, GCC would store
// and reload each half, which takes longer than the sum of a short row.
template <std::size_t n, class Combine>
[[gnu::always_inline]] inline float fold_halves(const float* lane, const Combine& combine) {
  if constexpr (n == 2) {
    return combine(lane[0], lane[1]);
  } else {
    using Half [[gnu::vector_size(n / 2 * sizeof(float))]] = float;
    Half low, high;
    std::memcpy(&low, lane, sizeof(low));
    std::memcpy(&high, lane + n / 2, sizeof(high));
    const Half both = combine(low, high);
    float rest[n / 2];
    std::memcpy(rest, &both, sizeof(both));
    return fold_halves<n / 2>(rest, combine);
  }
}

// Computes K sums in one loop over j in [0, count), where term(j) returns K addends.
template <std::size_t K, class Term>
std::array<float, K> lane_sums(std::int64_t count, Term term) {
  float sum[K][sum_lanes] = {};
  std::int64_t j = 0;
  for (; j + sum_lanes <= count; j += sum_lanes)
    for (std::int64_t lane = 0; lane < sum_lanes; ++lane) {
      const std::array<float, K> terms = term(j + lane);
      for (std::size_t k = 0; k < K; ++k) sum[k][lane] += terms[k];
    }
  for (std::int64_t lane = 0; j + lane < count; ++lane) {
    const std::array<float, K> terms = term(j + lane);
    for (std::size_t k = 0; k < K; ++k) sum[k][lane] += terms[k];
  }
  std::array<float, K> total;
  for (std::size_t k = 0; k < K; ++k) total[k] = fold_halves<sum_lanes>(sum[k], std::plus<>());
  return total;
}

}  // namespace chorale
