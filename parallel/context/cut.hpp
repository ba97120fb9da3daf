// How context-parallel ranks divide the tokens of each sequence. A sequence is cut into blocks (the leaves of exact
// numerics, layers/context.hpp), and a rank gets whole blocks. The last block may be short, and ranks may get unequal
// numbers.
//
//   8 blocks, 2 ranks   contiguous   0 0 0 0 1 1 1 1     a late rank's queries see more keys: causal work is uneven
//                       zigzag       0 0 1 1 1 1 0 0     rank r has chunks r and 2c − 1 − r of 2c (Llama 3): even work
//                       striped      0 1 0 1 0 1 0 1     nearly even work; a rank's tokens are far apart
//
// With contiguous shares of c ranks, the last rank computes 2 − 1/c times the mean.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace chorale {

struct ContextOptions {
  std::string scheme = "gather";  // a row of context_schemes() (context.hpp)
  std::string cut = "auto";       // a row of token_cuts(); auto: zigzag if the sequence has enough blocks, else contiguous
  std::int64_t inner = 0;         // of ulysses-ring: so many ranks exchange heads for tokens; 0: those of each host
};

struct TokenRun {
  std::int64_t first, count;  // tokens first … first + count − 1 of a sequence
  std::int64_t row;           // index of token `first` among this rank's rows of a sample
  bool operator==(const TokenRun&) const = default;
};

struct CutRow {
  const char* name;
  std::int64_t blocks_per_rank;  // the least number of blocks per rank
  std::int64_t (*rank_of)(std::int64_t block, std::int64_t blocks, std::int64_t ranks);
};
const std::vector<CutRow>& token_cuts();
const CutRow& token_cut_for(const std::string& name, std::int64_t sequence, std::int64_t ranks);

class TokenCut {
 public:
  TokenCut(std::int64_t sequence, std::int64_t ranks, const std::string& cut);

  const CutRow& row() const { return *row_; }
  std::int64_t sequence() const { return sequence_; }
  std::int64_t ranks() const { return static_cast<std::int64_t>(runs_.size()); }
  // The tokens of a rank in ascending order; adjacent blocks are one run.
  const std::vector<TokenRun>& runs(std::int64_t rank) const { return runs_[static_cast<std::size_t>(rank)]; }
  std::int64_t tokens(std::int64_t rank) const;
  bool in_order() const;  // whether each rank has one run, which follows that of the rank before
  std::vector<std::int64_t> places(std::int64_t rank) const;  // one per token
  // Pairs of a query of this rank and a key that it sees, in a sequence of one document.
  double pairs(std::int64_t rank) const;
  double pairs(std::int64_t rank, const TokenRun& keys) const;  // of these keys, a run of some rank

  // With parts of the ranks (part_of: by rank): a cut in which each part has all tokens of its ranks.
  TokenCut joined(const std::vector<std::int64_t>& part_of) const;
  // How the ranks of a part divide its tokens, which are numbered by their rows in the part.
  TokenCut within(const std::vector<std::int64_t>& part_of, std::int64_t part) const;

 private:
  void add(std::int64_t rank, std::int64_t first, std::int64_t count);  // the tokens of a rank come in ascending order
  const CutRow* row_;
  std::int64_t sequence_;
  std::vector<std::vector<TokenRun>> runs_;
};

}  // namespace chorale
