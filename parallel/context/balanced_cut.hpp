// The cuts of packed samples, each by the work of its documents. A token's causal work is the number of tokens before it in
// its document. So a late block is little work if a document has just begun there, and any fixed cut is uneven:
//
//   2 ranks, 8 blocks    a a a a a|b b c      documents a, b and c; work of the blocks in pairs of blocks
//   work                 1 3 5 7 9 1 3 1      of the tokens of a block
//   zigzag               0 0 1 1 1 1 0 0      rank 0:  8, rank 1: 22
//   balanced             1 0 1 1 0 1 0 0      rank 0: 16, rank 1: 14
//
// The costliest block of all samples of the micro-batch is dealt first, each to the rank with the least work so far that
// still has room in the sample (Graham's LPT rule; Graham 1969). So samples balance each other. In every sample a rank has
// room for as many blocks as under the usual cut, and the last block stays where it is if it is short. Tensors have the
// same shapes then, and plans need not know the documents. A sample of one document is cut as usual.
//
// Every rank reads whole samples, so all ranks make the same cuts without communication. Cost: a pass over the positions.
#pragma once
#include <span>

#include "parallel/layout/cut.hpp"

namespace chorale {

// positions: of all tokens of all samples in their documents, sample by sample.
std::vector<TokenCut> balanced_cuts(const TokenCut& usual, std::span<const std::int32_t> positions);

}  // namespace chorale
