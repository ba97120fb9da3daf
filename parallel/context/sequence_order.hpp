// If ranks divide sequences, the rows of complete sequences can be stored in two orders:
//
//   by rank       all rows of rank 0, sample by sample, then all rows of rank 1, …; collective calls produce this order
//   by sequence   sample by sample, in the order of the tokens; attention needs this order
#pragma once
#include "layers/context.hpp"
#include "parallel/layout/cut.hpp"
#include "parallel/mesh/axis.hpp"

namespace chorale {

// Returns the number of samples in a micro-batch, given the number of rows that this rank has of the micro-batch.
inline std::int64_t samples_of(std::int64_t rows, const Context& context) { return rows / context.tokens.tokens; }

// Returns how the ranks divide this sample of the micro-batch. If Context::cuts is not set, the result is `usual`.
inline const TokenCut& cut_of(std::int64_t sample, const TokenCut& usual, const Context& context) {
  return context.cuts ? context.cuts->at(static_cast<std::size_t>(sample)) : usual;
}

std::vector<std::int64_t> rows_of_ranks(const TokenCut& cut, std::int64_t samples);
// by_sequence() and by_rank() convert x to the named order. They return x itself if the two orders are the same.
Tensor by_sequence(const Tensor& x, const TokenCut& cut, std::int64_t samples, Context& context,
                   Category category = Category::workspace);
Tensor by_rank(const Tensor& x, const TokenCut& cut, std::int64_t samples, Context& context);

// Gathers the rows of all ranks along the axis, and returns complete sequences, ordered by sequence.
Tensor gathered(const Tensor& own, Axis& axis, const TokenCut& cut, Context& context);

}  // namespace chorale
