// Phases that several algorithms are made of: a ring all-reduce *is* a ring reduce-scatter followed by a ring all-gather. Where a
// block lies differs between them, so they are told by a function from blocks to places.
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

inline Home in_taken(const Problem& p) {  // all_to_all: where what comes from each rank ends
  return [&p](int b) { return output(p.taken.first(b), p.taken.count(b)); };
}

// A vector laid out like input, in fresh scratch.
inline Home in_scratch(Schedule& s) {
  const Problem& p = s.problem();
  const Range all = s.scratch(p.blocks.total());
  return [&p, all](int b) { return Range{Place::scratch, all.first + p.blocks.first(b), p.blocks.count(b)}; };
}

// Every rank's contribution to block b lies in input; the sum of block `rank` ends in home(rank). home(b) of the others takes
// partial sums.
void ring_reduce_scatter(Schedule& s, const Home& home);

// Block `rank` lies in `own`; all others end in home(b).
void ring_all_gather(Schedule& s, Range own, const Home& home);

void direct_reduce_scatter(Schedule& s, Range into);
void direct_all_gather(Schedule& s, Range own, const Home& home);

// In ⌈log₂ p⌉ rounds for any p, over a whole vector of partial sums laid out like input: skips p/2, p/4, … (rounded up).
void circulant_reduce_scatter(Schedule& s, const Home& home);
void circulant_all_gather(Schedule& s, const Home& home);  // block `rank` lies in home(rank) already

// The whole vector: from everybody's `own` into `sum` of the root (of others, `sum` takes partial sums); from the root's `whole`
// into everybody else's.
void binomial_reduce(Schedule& s, int root, Range own, const std::function<Range()>& sum);
void binomial_broadcast(Schedule& s, int root, Range whole);

// Blocks to and from the root; on the way they lie in home(b). Block `rank` of each lies, or ends, there too.
void binomial_gather(Schedule& s, int root, const Home& home);
void binomial_scatter(Schedule& s, int root, const Home& home);

// all_to_all: where the block for each rank is sent from. In place it is set aside first, since what comes in lands on it.
Home outgoing(Schedule& s);
void keep_own_block(Schedule& s, const Home& given);  // the one that this rank gives to itself

// Whole all-reduces, for whoever needs one of the whole vector: a barrier is one of a token.
void binomial_all_reduce(Schedule& s);
void one_shot_all_reduce(Schedule& s);

// Blocks first … first + count − 1, around the end if need be, as one or two pieces that are contiguous in `home`.
std::vector<Range> around(const Home& home, int size, int first, int count);

}  // namespace chorale
