// How context-parallel ranks divide the tokens of each sequence. A sequence is cut into blocks (the leaves of exact
// numerics, layers/context.hpp), and a rank gets whole blocks. The last block may be short, and ranks may get unequal
// numbers.
//
//   8 blocks, 2 ranks   contiguous   0 0 0 0 1 1 1 1     a late rank's queries see more keys: causal work is uneven
//                       zigzag       0 0 1 1 1 1 0 0     rank r has chunks r and 2c − 1 − r of 2c (Llama 3): even work
//                       striped      0 1 0 1 0 1 0 1     nearly even work; a rank's tokens are far apart
//                       balanced     1 0 1 1 0 1 0 0     by the work of a sample's documents (balanced_cut.hpp)
//
// With contiguous shares of c ranks, the last rank computes 2 − 1/c times the mean. A balanced cut gives each rank as many
// blocks as zigzag does, or as contiguous if the sequence has too few blocks for zigzag. If samples are not packed, it is
// that cut.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace chorale {

struct TokenRun {
  std::int64_t first, count;   // tokens first … first + count − 1 of a sequence
  std::int64_t row;            // index of token `first` among this rank's rows of a sample
  std::int64_t first_key = 0;  // the first key that a token of the run sees: 0 if documents are not known
  bool operator==(const TokenRun&) const = default;
};

struct CutRow {
  const char* name;
  std::int64_t blocks_per_rank;  // the least number of blocks per rank
  std::int64_t (*rank_of)(std::int64_t block, std::int64_t blocks, std::int64_t ranks);
  bool by_work = false;  // packed samples are cut one by one; rank_of then gives the usual cut, with as many blocks per rank
};
const std::vector<CutRow>& token_cuts();
const CutRow& token_cut_named(const std::string& name);
const CutRow& token_cut_for(const CutRow* asked, std::int64_t sequence, std::int64_t ranks);  // null: auto

// The cut of one sample, or of all samples if these are cut alike.
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
  bool in_order() const;         // whether in every sample each rank has one run, which follows that of the rank before
  std::vector<std::int64_t> places(std::int64_t rank) const;  // one per token
  // Pairs of a query of this rank and a key that it sees, in a sequence of one document.
  double pairs(std::int64_t rank) const;
  double pairs(std::int64_t rank, const TokenRun& keys) const;  // of these keys, a run of some rank
  // Whether a query of this rank sees one of these keys, a run of some rank.
  bool sees(std::int64_t rank, const TokenRun& keys) const;

  // A cut in which each block belongs to another rank. first_keys: by block, the first key that one of its tokens sees.
  TokenCut dealt(const std::vector<std::int64_t>& rank_of, const std::vector<std::int64_t>& first_keys) const;
  // With parts of the ranks (part_of: by rank): a cut in which each part has all tokens of its ranks.
  TokenCut joined(const std::vector<std::int64_t>& part_of) const;
  // How the ranks of a part divide its tokens, which are numbered by their rows in the part.
  TokenCut within(const std::vector<std::int64_t>& part_of, std::int64_t part) const;

 private:
  // The tokens of a rank come in ascending order.
  void add(std::int64_t rank, std::int64_t first, std::int64_t count, std::int64_t first_key = 0);
  const CutRow* row_;
  std::int64_t sequence_;
  std::vector<std::vector<TokenRun>> runs_;
};

}  // namespace chorale
