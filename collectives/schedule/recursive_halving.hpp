// Recursive halving and recursive doubling for any number of ranks p. Recursive halving and doubling need a number of ranks
// that is a power of two. So if p is not a power of two, some of the lowest ranks form pairs. Only the odd rank of a pair
// participates; the even rank is folded away. A place is a pair of ranks or an unpaired rank. The number of places is a
// power of two.
//
//   p = 6    ranks   0 1   2 3   4   5        rank 0 sends its vector to 1, rank 2 to 3
//            places   0     1    2   3        place k handles the blocks of its ranks, which are adjacent
#pragma once
#include <bit>

#include "collectives/schedule/phases.hpp"

namespace chorale {

class RecursiveHalving {
 public:
  explicit RecursiveHalving(const Problem& p)
      : p_(p), power_(static_cast<int>(std::bit_floor(static_cast<unsigned>(p.size)))), folded_(p.size - power_) {}

  int count() const { return power_; }  // the number of places
  int place() const { return in_a_pair() ? p_.rank / 2 : p_.rank - folded_; }
  int rank_of(int place) const { return place < folded_ ? 2 * place + 1 : place + folded_; }  // the rank that participates
  bool in_a_pair() const { return p_.rank < 2 * folded_; }
  bool folded_away() const { return in_a_pair() && p_.rank % 2 == 0; }

  // At the start, every rank's vector is in the rank's input. At the end, `home` holds the sums of this place's blocks.
  // `home` maps each block to a range (phases.hpp). Ranks that are folded away must not call this function.
  void reduce_scatter(Schedule& s, const Home& home) const;
  // The reverse of reduce_scatter: at the start, `home` holds this place's blocks; at the end, it holds all blocks.
  void all_gather(Schedule& s, const Home& home) const;

 private:
  int first_block(int place) const { return place < folded_ ? 2 * place : place + folded_; }
  Range places(const Home& home, int first, int count) const {
    const int block = first_block(first);
    return around(home, p_.size, block, first_block(first + count) - block).at(0);
  }

  const Problem& p_;
  int power_, folded_;
};

}  // namespace chorale
