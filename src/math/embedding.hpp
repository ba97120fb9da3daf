// Token embeddings, and two ways to encode positions: learned and rotary. Ids are i32.
//
//   y[row] = table[ids[row] − first], or zeros if the table row is on a different rank
#pragma once
#include "src/math/queue.hpp"

namespace chorale {

void gather_rows(const Tensor& ids, const Tensor& table, std::int64_t first, const Tensor& y, const Queue& queue);
void add_positions(const Tensor& table, const Tokens& tokens, const Tensor& y,
                   const Queue& queue);  // y[row] += table[position]

// Applies rotary positions (Su et al. 2021) in place. The tensor `x` has the shape [rows, units, heads, width]. A unit
// consists of the query heads, the key and the value of one group. The first `rotated` heads of each unit (the queries and
// the key, but not the value) are rotated. In each head, the elements i and i + width/2 are rotated as a pair, by the angle
// position·base^(−2i/width). If `back` is true, gradients are rotated by the opposite angle.
struct Rotary {
  std::int64_t units, heads, rotated, width;
  double base = 10000;
};
void rotate(const Tensor& x, const Rotary& rotary, const Tokens& tokens, bool back, const Queue& queue);

}  // namespace chorale
