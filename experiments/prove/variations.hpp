// A variation changes a case, but not its layout. Most variations must not change a single bit of the result. Such
// variations vary backends, algorithms, sizes of buckets and micro-batches, recomputation, and orders of axes. Such
// variations also vary schemes and sequence partitions of context parallelism, put shards and activations into a file, and
// update during the backward pass. The remaining variations do change the result. Routing, capacity and balance of experts
// change the model, documents change the data, and delayed updates change the training. These cases are compared with a run
// on one rank that has the same change.
//
//   --vary routing,recompute         one change at a time: 5 + 3 cases per layout
//   --combine routing,recompute      all combinations: 5 × 3 cases per layout
#pragma once
#include <functional>

#include "experiments/prove/cases.hpp"

namespace chorale::prove {

struct Variation {
  std::string words;                  // "recompute full"
  std::function<bool(Case&)> change;  // returns false if the case cannot be changed in this way
};

// The kinds of variations.
inline const std::vector<std::string> kinds{"backend",   "algorithm", "bucket",  "micro-batch", "schedule",
                                            "recompute", "order",     "context", "routing",     "capacity",
                                            "balance",   "documents", "place",   "update"};

// Throws a usage error if the model lacks the feature that a kind changes.
void check_kinds(const std::vector<std::string>& of_kinds, const ModelShape& shape);

std::vector<Variation> variations_of(const std::string& kind, const Case& plain);

// All combinations that make one change of each kind.
std::vector<Variation> combinations(const std::vector<std::string>& of_kinds, const Case& plain);
// A subset of these combinations that contains every pair of changes of two kinds at least once.
std::vector<Variation> pairwise(const std::vector<std::string>& of_kinds, const Case& plain);

}  // namespace chorale::prove
