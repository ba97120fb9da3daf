// What is to be proved: a row of the matrix is one way to train the same model. Layouts come first; variations of a few of
// them change what must not matter either.
#pragma once
#include <string>
#include <vector>

#include "parallel/training.hpp"

namespace chorale::prove {

struct Case {
  Layout layout;
  ByAxis backends, algorithms;
  TrainingOptions options;
  std::string variation = "";  // "bucket 1 KiB"
};

inline const std::vector<std::string> variations{"backend", "algorithm", "bucket", "micro-batch", "schedule", "recompute"};

// The layouts that are asked for ("all": every one of 1 to `world` ranks that fits), each with the micro-batches that suit
// it.
std::vector<Case> cases_of(const std::vector<std::string>& words, std::int64_t world, const Case& plain);
// Rows that differ from those layouts ("all": a few that have every strategy) in one thing each.
std::vector<Case> varied(const std::vector<std::string>& words, std::int64_t world, const Case& plain,
                         const std::vector<std::string>& what);
// A usage error where an algorithm that was asked for does not fit an axis of the layout.
void require_algorithms(const Case& row);

}  // namespace chorale::prove
