// Measures a call beside matrix products (`bench --beside products`). While the call is in flight, each rank computes a
// fixed number of products. After each product, the rank polls the call, as training does after each layer.
//
//   call alone        ├─────── time ──────┤
//   products alone    ├───── products ────┤              as many as take about as long as the call
//   together          ├ product ┊ product ┊ product ┤·· wait ··┤ both
//
//   hidden = (time + products − both) / min(time, products)
//
// The call is hidden completely if the two together take no longer than the longer of them alone, and not at all if they
// take as long as one after the other. If they disturb each other, `hidden` is negative.
#pragma once
#include <cstdint>
#include <vector>

#include "src/math/matmul.hpp"

namespace chorale::bench {

inline constexpr std::int64_t product_edge = 64;  // of square f32 matrices, which stay in a core's innermost caches
inline constexpr double product_flops = 2.0 * product_edge * product_edge * product_edge;

// The times are medians over the repetitions, in seconds, of the slowest rank's time. Negative: not measured.
struct BesideTimes {
  std::int64_t products = 0;  // number of products of each rank
  double alone = -1;          // the products without a call
  double call = -1;           // from the start of the call until the rank sees that the call is complete
  double slowed = -1;         // from the start of the call until the rank's products are complete
  double both = -1;           // until both are complete
};

// The share of the shorter of the two that the longer one hides.
double hidden_share(double call_alone, double products_alone, double both);

// One rank's matrices.
class ProductsBeside {
 public:
  ProductsBeside();
  void multiply();  // computes one product

 private:
  Matmuls library_;
  std::vector<float> x_, w_, y_;
};

}  // namespace chorale::bench
