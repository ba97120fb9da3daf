// The order in which the compared runs are executed. Each round has a new random order. Thus no run is always first, and no
// run always follows the same other run.
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

// Shuffles by the Fisher–Yates method. Unlike std::shuffle, this function gives the same order with every standard library.
inline std::vector<std::size_t> random_order(std::size_t count, std::mt19937_64& random) {
  std::vector<std::size_t> order = in_order(count);
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

// Returns a random order for this seed, or 0, 1, 2, … for seed 0.
inline std::vector<std::size_t> order_by_seed(std::size_t count, std::int64_t seed) {
  if (seed == 0) return in_order(count);
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  return random_order(count, random);
}

}  // namespace chorale
