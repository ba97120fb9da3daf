// Finds the longest sequences that fit a memory limit. Compares the given layout with a layout without context parallelism.
// For each layout, activations are kept, recomputed in attention only, or recomputed in complete blocks.
//
//   layout      recompute   seq-length
//   dp1.cp4     none             9216
//               selective       10240
//               full            31744
//   dp4         none             2304      the same ranks, each with complete sequences
//
// A length is a multiple of 256 tokens times the number of blocks into which context-parallel ranks divide a sequence. The
// search doubles the length until it does not fit, and then bisects. Lengths above 10 million are not tried. Each trial
// plans a step; a row takes 20 to 30 trials.
#pragma once
#include <string>

#include "parallel/plan/plan.hpp"
#include "parallel/plan/room.hpp"

namespace chorale::plan {

// `options_of` returns the model, the batch and the memory limit; the search replaces the sequence length and the
// recomputation. The batch is rounded up to a multiple of the micro-batches of all replicas.
std::string longest_sequences(const Layout& layout, const OptionsOf& options_of, const std::string& format);

}  // namespace chorale::plan
