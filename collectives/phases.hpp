// Phases that several algorithms share. For example, a ring all-reduce is a ring reduce-scatter followed by a ring
// all-gather. Algorithms keep blocks in different places, so a phase takes a function from block to place.
#pragma once
#include <algorithm>
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

inline Home in_taken(const Problem& p) {  // all_to_all: where the block from each rank is received
  return [&p](int b) { return output(p.taken.first(b), p.taken.count(b)); };
}

// A vector laid out like the input, in new scratch.
inline Home in_scratch(Schedule& s) {
  const Problem& p = s.problem();
  const Range all = s.scratch(p.blocks.total());
  return [&p, all](int b) { return Range{Place::scratch, all.first + p.blocks.first(b), p.blocks.count(b)}; };
}

// Every rank's contribution to block b starts in input. The sum of block `rank` ends in home(rank); the homes of other
// blocks take partial sums.
void ring_reduce_scatter(Schedule& s, const Home& home);

// Block `rank` starts in `own`; all others end in home(b).
void ring_all_gather(Schedule& s, Range own, const Home& home);

void direct_reduce_scatter(Schedule& s, Range into);
void direct_all_gather(Schedule& s, Range own, const Home& home);

// ⌈log₂ p⌉ rounds for any p: skips p/2, p/4, … (rounded up). The homes form a vector of partial sums, laid out like input.
void circulant_reduce_scatter(Schedule& s, const Home& home);
void circulant_all_gather(Schedule& s, const Home& home);  // block `rank` starts in home(rank)

// Whole vectors. The reduce goes from every rank's `own` to the root's `sum`; on other ranks `sum` takes partial sums. The
// broadcast goes from the root's `whole` to that of every other rank.
void binomial_reduce(Schedule& s, int root, Range own, const std::function<Range()>& sum);
void binomial_broadcast(Schedule& s, int root, Range whole);

// Blocks travel to or from the root; on the way, block b lies in home(b). A rank's own block starts or ends in home(rank).
void binomial_gather(Schedule& s, int root, const Home& home);
void binomial_scatter(Schedule& s, int root, const Home& home);

// all_to_all: where the block for each rank is sent from. In place, it is copied to scratch before others arrive.
Home outgoing(Schedule& s);
void keep_own_block(Schedule& s, const Home& given);  // copies the block that this rank sends to itself

// Whole all-reduces, which others reuse: a barrier is an all-reduce of one token.
void binomial_all_reduce(Schedule& s);
void one_shot_all_reduce(Schedule& s);

// Blocks first … first + count − 1, modulo size, as one or two pieces that are contiguous in `home`.
std::vector<Range> around(const Home& home, int size, int first, int count);

}  // namespace chorale
