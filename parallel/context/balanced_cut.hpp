// Divides packed samples among context-parallel ranks so that all ranks have similar attention load. A token's causal load
// is the number of tokens before it in its document. So a block late in a sample is cheap if its document has just begun,
// and any fixed cut is uneven:
//
//   2 ranks, 8 blocks    a a a a a|b b c      each block belongs to document a, b or c
//   load                 1 3 5 7 9 1 3 1      load of each block
//   zigzag               0 0 1 1 1 1 0 0      rank 0:  8, rank 1: 22
//   balanced             1 0 1 1 0 1 0 0      rank 0: 16, rank 1: 14
//
// The blocks of all samples in the micro-batch are assigned in order of decreasing load. Each block is assigned to the rank
// with the least load so far that still has room in the sample (Graham's LPT rule; Graham 1969). So the loads of different
// samples balance each other. In every sample, a rank has room for as many blocks as under the usual cut, and a short last
// block stays on its usual rank. So tensors keep their shapes, and plans need not know the documents. A sample that is one
// document gets the usual cut.
//
// Every rank reads complete samples, so all ranks compute the same cuts without communication. The computation takes one
// pass over the positions of the tokens.
#pragma once
#include <span>

#include "parallel/layout/cut.hpp"

namespace chorale {

// positions: the position of each token within its document, for all tokens of all samples.
std::vector<TokenCut> balanced_cuts(const TokenCut& usual, std::span<const std::int32_t> positions);

}  // namespace chorale
