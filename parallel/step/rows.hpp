// The rows of a micro-batch on one rank: the rank's tokens of each sample (TokenCut), their targets, and tables that tell
// kernels where the tokens are in their sample and in their document.
//
//   sample          a b c . | d e f .      two documents, two ranks, zigzag: rank 0 has the tokens a b f .
//   rank 0: inputs  a b f .    places  0 1 6 7    positions  0 1 2 3
//
// Every rank reads complete samples and then keeps only its own rows.
#pragma once
#include <functional>

#include "parallel/layout/cut.hpp"
#include "parallel/step/run_pipeline.hpp"
#include "src/data/tokens.hpp"

namespace chorale {

// Fills the rows of `samples` samples, beginning with sample number `first`. If rows.positions is not empty, it already has
// each token's index in its sample. A reader of packed samples overwrites it with each token's index in its document.
using ReadSamples = std::function<void(std::int64_t first, std::int64_t samples, const SampleRows& rows)>;

// Allocates the tables that kernels and context.attention need for `samples` samples, and fills in the places of the tokens.
void make_tables(const TokenCut& cut, std::int64_t rank, std::int64_t samples, bool packed, Context& context);
// Reads the samples cursor … cursor + there − 1 and stores the rank's rows. Any further rows of the micro-batch do not
// count. `cut`: how ranks divide every sample. If samples are packed and divided by attention work, this function instead
// computes a separate cut for each sample.
void read_rows(const ReadSamples& read, std::int64_t cursor, std::int64_t there, const TokenCut& cut, std::int64_t rank,
               MicroBatch& batch);

}  // namespace chorale
