// The rows of a micro-batch on one rank. Each row is a token of a sample that this rank processes (TokenCut), with its
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

// Makes the tables that kernels and context.attention need for `samples` samples, and fills in the places.
void make_tables(const TokenCut& cut, std::int64_t rank, std::int64_t samples, bool packed, Context& context);
// Reads the samples cursor … cursor + there − 1 and stores the rank's rows. If the micro-batch has more rows, these rows do
// not count. `cut`: how ranks divide every sample. If samples are packed and divided by attention work, this function
// instead computes a separate cut for each sample.
void read_rows(const ReadSamples& read, std::int64_t cursor, std::int64_t there, const TokenCut& cut, std::int64_t rank,
               MicroBatch& batch);

}  // namespace chorale
