// Halves of algorithms that others are made of: a ring all-reduce *is* a ring reduce-scatter followed by a ring all-gather. Where a
// block lies differs between them, so they are told by a function from blocks to places.
#pragma once
#include <functional>

#include "collectives/schedule.hpp"

namespace chorale {

using Home = std::function<Range(int block)>;

inline Home in_input(const Problem& p) {
  return [&p](int b) { return input(p.blocks.first(b), p.blocks.count(b)); };
}
inline Home in_output(const Problem& p) {
  return [&p](int b) { return output(p.blocks.first(b), p.blocks.count(b)); };
}

// Every rank's contribution to block b lies in input; the sum of block `rank` ends in home(rank). home(b) of the others takes
// partial sums.
void ring_reduce_scatter(Schedule& s, const Home& home);

// Block `rank` lies in `own`; all others end in home(b).
void ring_all_gather(Schedule& s, Range own, const Home& home);

void direct_reduce_scatter(Schedule& s, Range into);
void direct_all_gather(Schedule& s, Range own, const Home& home);

// The whole vector: from everybody's `own` into `sum` of the root (of others, `sum` takes partial sums); from the root's `whole`
// into everybody else's.
void binomial_reduce(Schedule& s, int root, Range own, const std::function<Range()>& sum);
void binomial_broadcast(Schedule& s, int root, Range whole);

}  // namespace chorale
