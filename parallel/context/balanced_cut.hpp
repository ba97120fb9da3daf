// Divides packed samples among context-parallel ranks so that all ranks have similar attention load. A token's causal load
// is the number of tokens before it in its document. So a block near the end of a sample has a low load if its document has
// just begun. With any fixed assignment of blocks to ranks, the load is therefore uneven:
//
//   2 ranks, 8 blocks    a a a a a|b b c      each block belongs to document a, b or c
//   load                 1 3 5 7 9 1 3 1      load of each block
//   zigzag               0 0 1 1 1 1 0 0      rank 0:  8, rank 1: 22
//   balanced             1 0 1 1 0 1 0 0      rank 0: 16, rank 1: 14
//
// The blocks of all samples in the micro-batch are assigned in order of decreasing load. Each block is assigned to the rank
// with the least load so far, among the ranks that still need blocks of the sample (Graham's LPT rule; Graham 1969). So a
// high load in one sample is offset by a low load in a different sample. In every sample, a rank gets as many blocks as in
// the default partition (zigzag or contiguous). A short last block stays on the rank that has it by default. So tensor
// shapes do not change, and plans need not know the documents. A sample that consists of one document gets the default
// partition.
//
// Every rank reads complete samples, so all ranks compute the same partitions without communication. The computation takes
// one pass over the positions of the tokens.
#pragma once
#include <span>

#include "parallel/layout/cut.hpp"

namespace chorale {

// `usual` is the default partition. `positions` holds the position of each token within its document, for all tokens of all
// samples.
std::vector<TokenCut> balanced_cuts(const TokenCut& usual, std::span<const std::int32_t> positions);

}  // namespace chorale
