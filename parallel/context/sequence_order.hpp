// Two orders of the rows of whole sequences that ranks divide:
//
//   by rank       all rows of rank 0, sample by sample, then those of rank 1, …: as collective calls leave them
//   by sequence   sample by sample, in the order of the tokens: as attention takes them
#pragma once
#include "layers/context.hpp"
#include "parallel/layout/cut.hpp"
#include "parallel/mesh/axis.hpp"

namespace chorale {

// The number of samples in a micro-batch, if this rank has `rows` rows of it.
inline std::int64_t samples_of(std::int64_t rows, const Context& context) { return rows / context.tokens.tokens; }

// How the ranks divide a sample of the micro-batch. `usual`: their cut of all samples that are cut alike.
inline const TokenCut& cut_of(std::int64_t sample, const TokenCut& usual, const Context& context) {
  return context.cuts ? context.cuts->at(static_cast<std::size_t>(sample)) : usual;
}

std::vector<std::int64_t> rows_of_ranks(const TokenCut& cut, std::int64_t samples);
// These return x itself if both orders are the same.
Tensor by_sequence(const Tensor& x, const TokenCut& cut, std::int64_t samples, Context& context,
                   Category category = Category::workspace);
Tensor by_rank(const Tensor& x, const TokenCut& cut, std::int64_t samples, Context& context);

// The rows of whole sequences, by sequence, from the rows that each rank along the axis has.
Tensor gathered(const Tensor& own, Axis& axis, const TokenCut& cut, Context& context);

}  // namespace chorale
