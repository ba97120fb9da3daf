// A cut is a partition of each sequence's tokens among context-parallel ranks. A sequence is divided into blocks (the leaves
// of exact numerics, layers/context.hpp), and each rank gets complete blocks. The last block can be short, and ranks can get
// unequal numbers of blocks.
//
//   8 blocks, 2 ranks   contiguous   0 0 0 0 1 1 1 1     queries of later ranks see more keys, so the causal load is uneven
//                       zigzag       0 0 1 1 1 1 0 0     rank r has chunks r and 2c − 1 − r of 2c (Llama 3): even load
//                       striped      0 1 0 1 0 1 0 1     nearly even load; a rank's tokens are far apart
//                       balanced     1 0 1 1 0 1 0 0     balances the load of each sample's documents (balanced_cut.hpp)
//
// If each of c ranks has one contiguous share, the attention work of the last rank is 2 − 1/c times the mean. In the
// balanced partition, each rank has as many blocks as in the zigzag partition. If a sequence has too few blocks for zigzag,
// the contiguous partition replaces zigzag. If samples are not packed, the balanced partition is identical to the zigzag (or
// contiguous) partition.
#pragma once
#include <cstdint>
#include <vector>

#include <chorale/training.hpp>

namespace chorale {

struct TokenRun {
  std::int64_t first, count;   // `count` tokens of a sequence, beginning with token `first`
  std::int64_t row;            // row of token `first` in the tensor that holds this rank's tokens of a sample
  std::int64_t first_key = 0;  // the first key to which a token of the run attends; 0 if documents are not known
  bool operator==(const TokenRun&) const = default;
};

struct CutRow {
  const char* name;
  std::int64_t blocks_per_rank;  // minimum number of blocks per rank
  std::int64_t (*rank_of)(std::int64_t block, std::int64_t blocks, std::int64_t ranks);
  // If true, each packed sample has its own partition, and `rank_of` gives the partition of a sample that is not packed. A
  // rank gets the same number of blocks in all these partitions.
  bool by_work = false;
};
const std::vector<CutRow>& token_cuts();
const CutRow& token_cut_for(const CutRow* asked, std::int64_t sequence, std::int64_t ranks);  // null means auto

// The partition of a sample's tokens among context-parallel ranks. If samples do not have their own partitions, one TokenCut
// describes all samples.
class TokenCut {
 public:
  TokenCut(std::int64_t sequence, std::int64_t ranks, const CutRow* cut);  // null means auto

  const CutRow& row() const { return *row_; }
  std::int64_t sequence() const { return sequence_; }
  std::int64_t ranks() const { return static_cast<std::int64_t>(runs_.size()); }
  // The tokens of a rank as runs, in ascending order; adjacent blocks form one run.
  const std::vector<TokenRun>& runs(std::int64_t rank) const { return runs_[static_cast<std::size_t>(rank)]; }
  std::int64_t tokens(std::int64_t rank) const;
  std::int64_t fullest() const;  // the rank with the most tokens; if there are several, the first of them
  bool in_order() const;         // whether, in every sample, each rank has one run and runs are in rank order
  std::vector<std::int64_t> places(std::int64_t rank) const;  // positions of the rank's tokens in the sequence
  // Counts the (query, key) pairs in which the query is on this rank and attends to the key. Assumes that the sequence is
  // one document.
  double pairs(std::int64_t rank) const;
  double pairs(std::int64_t rank, const TokenRun& keys) const;  // counts only pairs with a key in `keys`, a run of any rank
  // Whether any query of this rank attends to any key in `keys`, a run of any rank.
  bool sees(std::int64_t rank, const TokenRun& keys) const;

  // Returns the partition that assigns block i to rank `rank_of[i]`. `first_keys[i]` is the first key to which a token of
  // block i attends.
  TokenCut dealt(const std::vector<std::int64_t>& rank_of, const std::vector<std::int64_t>& first_keys) const;
  // Joins ranks into parts: rank r belongs to part `part_of[r]`. Returns a TokenCut in which each part has all tokens of its
  // ranks.
  TokenCut joined(const std::vector<std::int64_t>& part_of) const;
  // Returns how the ranks of a part divide the part's tokens. The result numbers tokens by their rows in the part.
  TokenCut within(const std::vector<std::int64_t>& part_of, std::int64_t part) const;

 private:
  // Callers add the tokens of each rank in ascending order.
  void add(std::int64_t rank, std::int64_t first, std::int64_t count, std::int64_t first_key = 0);
  const CutRow* row_;
  std::int64_t sequence_;
  std::vector<std::vector<TokenRun>> runs_;
};

}  // namespace chorale
