#include "parallel/pipeline/split.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "src/base/error.hpp"

namespace chorale {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

// Finds the cheapest partition by dynamic programming. The cheapest partition of the first n layers into k parts follows
// from the cheapest partitions of fewer layers into k − 1 parts. The price of a partition is the quantity to be minimized.
// `joined` computes the price of a partition into k parts from the price of the first k − 1 parts and the cost of the last
// part.
struct Cuts {
  using Join = std::function<double(double before, double part)>;

  Cuts(std::span<const double> costs, std::size_t parts, const Join& joined)
      : price(parts + 1, std::vector<double>(costs.size() + 1, never)),
        last(parts + 1, std::vector<std::size_t>(costs.size() + 1, 0)) {
    price[0][0] = 0;
    for (std::size_t k = 1; k <= parts; ++k)
      for (std::size_t n = k; n <= costs.size(); ++n) {
        double part = 0;
        for (std::size_t size = 1; size <= n - (k - 1); ++size) {
          part += costs[n - size];
          const double candidate = joined(price[k - 1][n - size], part);
          if (candidate <= price[k][n]) {
            price[k][n] = candidate;
            last[k][n] = size;
          }
        }
      }
  }

  std::vector<std::vector<double>> price;      // [parts][layers]: the price of the cheapest partition
  std::vector<std::vector<std::size_t>> last;  // [parts][layers]: the number of layers in the last part of that partition
};

}  // namespace

std::vector<std::int64_t> split_layers(std::span<const double> costs, std::int64_t parts) {
  const std::size_t layers = costs.size();
  require(parts >= 1 && static_cast<std::size_t>(parts) <= layers, "{} layers cannot be cut into {} parts", layers, parts);
  const auto count = static_cast<std::size_t>(parts);
  const double greatest =
      Cuts(costs, count, [](double before, double part) { return std::max(before, part); }).price[count][layers];
  const Cuts even(costs, count, [&](double before, double part) { return part <= greatest ? before + part * part : never; });
  std::vector<std::int64_t> sizes(count);
  std::size_t left = layers;
  for (std::size_t k = count; k > 0; --k) {
    sizes[k - 1] = static_cast<std::int64_t>(even.last[k][left]);
    left -= even.last[k][left];
  }
  return sizes;
}

}  // namespace chorale
