// A cut states how context-parallel ranks divide the tokens of each sequence. A sequence is divided into blocks (the leaves
// of exact numerics, layers/context.hpp), and each rank gets complete blocks. The last block can be short, and ranks can get
// unequal numbers of blocks.
//
//   8 blocks, 2 ranks   contiguous   0 0 0 0 1 1 1 1     queries of later ranks see more keys, so the causal load is uneven
//                       zigzag       0 0 1 1 1 1 0 0     rank r has chunks r and 2c − 1 − r of 2c (Llama 3): even load
//                       striped      0 1 0 1 0 1 0 1     nearly even load; a rank's tokens are far apart
//                       balanced     1 0 1 1 0 1 0 0     balances the load of each sample's documents (balanced_cut.hpp)
//
// If each of c ranks has one contiguous share, the attention work of the last rank is 2 − 1/c times the mean. A balanced cut
// gives each rank as many blocks as the zigzag cut does, or as the contiguous cut if the sequence has too few blocks for
// zigzag. If samples are not packed, the balanced cut is identical to the zigzag cut (or the contiguous cut).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <chorale/training.hpp>

namespace chorale {

struct TokenRun {
  std::int64_t first, count;   // tokens first … first + count − 1 of a sequence
  std::int64_t row;            // row of token `first` in the tensor that holds this rank's tokens of a sample
  std::int64_t first_key = 0;  // the first key to which a token of the run attends; 0 if documents are not known
  bool operator==(const TokenRun&) const = default;
};

struct CutRow {
  const char* name;
  std::int64_t blocks_per_rank;  // smallest number of blocks per rank
  std::int64_t (*rank_of)(std::int64_t block, std::int64_t blocks, std::int64_t ranks);
  // true: each packed sample has its own cut. rank_of then gives the cut of a sample that is not packed. A rank gets the
  // same number of blocks under all these cuts.
  bool by_work = false;
};
const std::vector<CutRow>& token_cuts();
const CutRow& token_cut_for(const CutRow* asked, std::int64_t sequence, std::int64_t ranks);  // null: auto

// States which tokens of a sample each context-parallel rank has. If samples have no separate cuts, one TokenCut describes
// all samples.
class TokenCut {
 public:
  TokenCut(std::int64_t sequence, std::int64_t ranks, const CutRow* cut);  // null: auto

  const CutRow& row() const { return *row_; }
  std::int64_t sequence() const { return sequence_; }
  std::int64_t ranks() const { return static_cast<std::int64_t>(runs_.size()); }
  // The tokens of a rank in ascending order; adjacent blocks are one run.
  const std::vector<TokenRun>& runs(std::int64_t rank) const { return runs_[static_cast<std::size_t>(rank)]; }
  std::int64_t tokens(std::int64_t rank) const;
  std::int64_t fullest() const;  // the first rank with the most tokens
  bool in_order() const;         // whether, in every sample, each rank has one run, and the runs are in rank order
  std::vector<std::int64_t> places(std::int64_t rank) const;  // positions of the rank's tokens in the sequence
  // Counts the (query, key) pairs in which the query is on this rank and attends to the key. Assumes that the sequence is
  // one document.
  double pairs(std::int64_t rank) const;
  double pairs(std::int64_t rank, const TokenRun& keys) const;  // counts only keys in `keys`, a run of any rank
  // Whether any query of this rank attends to any key in `keys`, a run of any rank.
  bool sees(std::int64_t rank, const TokenRun& keys) const;

  // Returns the cut that assigns block i to rank_of[i]. first_keys[i]: the first key to which a token of block i attends.
  TokenCut dealt(const std::vector<std::int64_t>& rank_of, const std::vector<std::int64_t>& first_keys) const;
  // Joins ranks to parts: rank r belongs to part part_of[r]. Returns a TokenCut in which each part has all tokens of its
  // ranks.
  TokenCut joined(const std::vector<std::int64_t>& part_of) const;
  // Returns how the ranks of a part divide the part's tokens. In the result, a token's number is the token's row in the
  // part.
  TokenCut within(const std::vector<std::int64_t>& part_of, std::int64_t part) const;

 private:
  // Callers add the tokens of each rank in ascending order.
  void add(std::int64_t rank, std::int64_t first, std::int64_t count, std::int64_t first_key = 0);
  const CutRow* row_;
  std::int64_t sequence_;
  std::vector<std::vector<TokenRun>> runs_;
};

}  // namespace chorale
