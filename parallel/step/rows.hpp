// The rows of a micro-batch on one rank. Each row is one of this rank's tokens of a sample (TokenCut), with the token's
// target. Tables give each token's position in its sample and in its document.
//
//   sample          a b c . | d e f .      two documents, two ranks, zigzag: rank 0 has the tokens a b f .
//   rank 0: inputs  a b f .    places  0 1 6 7    positions  0 1 2 3
//
// Every rank reads complete samples and then keeps only its own rows.
#pragma once
#include <chorale/data.hpp>
#include "parallel/layout/cut.hpp"
#include "parallel/step/run_pipeline.hpp"

namespace chorale {

// Allocates the tables that kernels and context.attention need for `samples` samples, and fills in the places (the tokens'
// indices in their sample).
void make_tables(const TokenCut& cut, std::int64_t rank, std::int64_t samples, bool packed, Context& context);
// Reads `there` samples, beginning with the sample `cursor`, and stores the rank's rows. If the micro-batch has more rows,
// the additional rows do not count in the loss. `cut` is the partition of every sample among ranks. If samples are packed
// and divided by attention work, this function instead computes a separate partition for each sample.
void read_rows(const ReadSamples& read, std::int64_t cursor, std::int64_t there, const TokenCut& cut, std::int64_t rank,
               MicroBatch& batch);

}  // namespace chorale
