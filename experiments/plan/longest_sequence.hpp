// The longest sequences that fit a memory limit. They are found with the layout as given and without context parallelism, in
// each case with the activations kept, recomputed in attention, or recomputed in whole blocks.
//
//   layout      recompute   seq-length
//   dp1.cp4     none             9216
//               selective       10240
//               full            31744
//   dp4         none             2304      the same ranks, each with whole sequences
//
// Lengths are multiples of 256 tokens times the blocks that the cut needs. The search doubles the length until it does not
// fit, then bisects; lengths beyond 10 million are not tried. Each try plans a step; a row takes 20 to 30 tries.
#pragma once
#include <string>

#include "parallel/plan/plan.hpp"
#include "parallel/plan/room.hpp"

namespace chorale::plan {

// `options_of` has the model, the batch and the memory limit; its sequence length and recomputation are replaced. The batch
// is rounded up to a multiple of the micro-batches of all replicas.
std::string longest_sequences(const Layout& layout, const OptionsOf& options_of, const std::string& format);

}  // namespace chorale::plan
