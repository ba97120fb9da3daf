// The order in which runs take turns. It is drawn anew for each round, so that no run is always first or always follows the
// same other one.
#pragma once
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace chorale {

inline std::vector<std::size_t> in_order(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

// Fisher–Yates. The same generator gives the same order everywhere, unlike std::shuffle.
inline std::vector<std::size_t> random_order(std::size_t count, std::mt19937_64& random) {
  std::vector<std::size_t> order = in_order(count);
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

// Random by this seed; 0: in order.
inline std::vector<std::size_t> order_by_seed(std::size_t count, std::int64_t seed) {
  if (seed == 0) return in_order(count);
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  return random_order(count, random);
}

}  // namespace chorale
