// Phases that several algorithms share. For example, a ring all-reduce is a ring reduce-scatter followed by a ring
// all-gather. Algorithms store the blocks of the vector in different ranges, so a phase takes a Home as an argument. A Home
// is a function that maps a block's number to the range where this rank stores the block.
#pragma once
#include <functional>

#include <chorale/schedule.hpp>

namespace chorale {

using Home = std::function<Range(int block)>;

inline Home in_input(const Problem& p) {
  return [&p](int b) { return input(p.blocks.first(b), p.blocks.count(b)); };
}
inline Home in_output(const Problem& p) {
  return [&p](int b) { return output(p.blocks.first(b), p.blocks.count(b)); };
}

inline Home in_taken(const Problem& p) {  // all_to_all: the range that receives the block from each rank
  return [&p](int b) { return output(p.taken.first(b), p.taken.count(b)); };
}

// Allocates scratch for a complete vector, with the blocks in order.
inline Home in_scratch(Schedule& s) {
  const Problem& p = s.problem();
  const Range all = s.scratch(p.blocks.total());
  return [&p, all](int b) { return Range{Place::scratch, all.first + p.blocks.first(b), p.blocks.count(b)}; };
}

// Sums the inputs of all ranks. Afterwards home(rank) holds the sum of this rank's block; home(b) holds a partial sum of any
// other block b.
void ring_reduce_scatter(Schedule& s, const Home& home);

// Gathers the blocks of all ranks. This rank's block is in `own`. Afterwards every other block b is in home(b).
void ring_all_gather(Schedule& s, Range own, const Home& home);

void direct_reduce_scatter(Schedule& s, Range into);  // afterwards `into` holds the sum of this rank's block
void direct_all_gather(Schedule& s, Range own, const Home& home);

// The circulant functions take ⌈log₂ p⌉ rounds for any number of ranks p. In the reduce-scatter, rank r sends to ranks r +
// p/2, r + p/4, … in this order, where the fractions are rounded up. The all-gather is the reverse: rank r sends to ranks …,
// r − p/4, r − p/2. `own` maps each block to the range of this rank's addend. Blocks in adjacent ranges are sent in one
// message. So if the ranges of two blocks are adjacent on one rank, they must be adjacent on all ranks.
void circulant_reduce_scatter(Schedule& s, const Home& own, const Home& home);
void circulant_all_gather(Schedule& s, const Home& home);  // home(rank) must hold this rank's block at the start

// binomial_reduce and binomial_broadcast send complete vectors. binomial_reduce sums the ranges `own` of all ranks. On a
// rank that receives vectors, sum() returns the range for the rank's partial sum; the root's sum is the result.
// binomial_broadcast copies the root's range `whole` to the range `whole` of all other ranks.
void binomial_reduce(Schedule& s, int root, Range own, const std::function<Range()>& sum);
void binomial_broadcast(Schedule& s, int root, Range whole);

// binomial_gather sends blocks to the root, and binomial_scatter sends blocks from the root. Each rank that forwards block b
// stores the block in home(b). Before a gather, every rank's own block must be in home(rank). After a scatter, every rank's
// own block is in home(rank).
void binomial_gather(Schedule& s, int root, const Home& home);
void binomial_scatter(Schedule& s, int root, const Home& home);

// all_to_all: returns the range that holds the outgoing block for each rank. In an in-place call, outgoing blocks are first
// copied to scratch, because incoming blocks overwrite the vector.
Home outgoing(Schedule& s);
void keep_own_block(Schedule& s, const Home& given);  // copies this rank's own block to the output

// Returns all ranks except `rank`, in the order rank + 1, rank + 2, … modulo `size`. If each rank goes through its list,
// each rank starts with a different peer.
std::vector<int> others_from(int rank, int size);

// Appends a range to `ranges`. If the range begins where the last range ends, it is merged into the last range, so that both
// are sent in one message.
void append_merged(std::vector<Range>& ranges, const Range& range);
// Returns the ranges of `count` consecutive blocks from block `first` on, modulo `size`, merged where they are adjacent.
std::vector<Range> around(const Home& home, int size, int first, int count);

}  // namespace chorale
