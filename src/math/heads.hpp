// Copies some heads out of rows of queries, keys and values, so that a kernel for rows can work on them, and back.
//
//   x [T, units·heads·width]:   q q k v │ q q k v │ …      heads = 4, two units       queries: first 0, count 2
//   rows [T·units·count, width], in the order of x:        q, q, q, q, …              keys:    first 2, count 1
//
// Memory-bound: reads and writes the chosen heads once.
#pragma once
#include "src/math/queue.hpp"

namespace chorale {

// The heads [first, first + count) of each unit.
struct SomeHeads {
  std::int64_t units, heads, first, count, width;
};

// rows = the heads of x, or if `back` the heads of x = rows; the other heads of x stay. Any type.
void copy_heads(const Tensor& x, const SomeHeads& heads, const Tensor& rows, bool back, const Queue& queue);

}  // namespace chorale
