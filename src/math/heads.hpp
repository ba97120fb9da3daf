// Copies some heads out of rows of queries, keys and values, so that a row kernel can process them, and copies them back.
//
//   x [T, units·heads·width]:   q q k v │ q q k v │ …      heads = 4, two units       queries: first 0, count 2
//   rows [T·units·count, width], in the order of x:        q, q, q, q, …              keys:    first 2, count 1
//
// The copies are memory-bound. A copy reads and writes the chosen heads once.
#pragma once
#include "src/math/queue.hpp"

namespace chorale {

// The `count` heads of each unit that start at head `first`.
struct SomeHeads {
  std::int64_t units, heads, first, count, width;
};

// Copies the chosen heads of x to `rows`, or copies `rows` to these heads of x if `back` is true. The other heads of x do
// not change. Any element type is allowed.
void copy_heads(const Tensor& x, const SomeHeads& heads, const Tensor& rows, bool back, const Queue& queue);

}  // namespace chorale
