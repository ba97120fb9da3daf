// Checks whether the plan of a layout fits in a memory limit. If it does not, suggests flags and layouts that fit.
//
//   shortage_of    the fullest rank and the category with which it exceeds the limit
//   require_room   throws an error that names flags and layouts with which the model fits
//   has_room       plans each stage, unless a lower bound on its bytes already exceeds the limit
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "parallel/layout/layout.hpp"
#include "parallel/layout/layout_rules.hpp"
#include "parallel/step/training_options.hpp"
#include "src/base/error.hpp"

namespace chorale {

// The error for too little memory. A suite records this error as the layout's result, not as a mistake in the suite's
// options. All ranks of a run throw this error together, so MPI can be finalized.
class NoRoom : public Error {
  using Error::Error;
};

// The first two lines of an error: the memory category with which a rank exceeds its limit, and the bytes.
struct Shortage {
  std::string what, numbers;
};
using OptionsOf = std::function<TrainingOptions(const Layout&)>;

// Returns nullopt if all ranks stay within the limit, or if no limit is set. Only one rank of each stage is planned: the
// rank with the last shard and the most tokens. A different rank may need one more block of the vocabulary. If that block
// does not fit, the run's ledger refuses the allocation.
std::optional<Shortage> shortage_of(const Layout& layout, const OptionsOf& options_of, const std::string& limit_is);
// Throws NoRoom if a rank has too little memory. The error suggests layouts that fit in memory.
void require_room(const Layout& layout, const LayoutLimits& limits, const OptionsOf& options_of,
                  const std::string& limit_is = "the limit is");
// The error's third line: up to three layouts for the same number of ranks that fit in memory. If there are none, the number
// of ranks is doubled until a layout has room, with the same memory per rank. If no layout is found, returns `otherwise`.
using HasRoom = std::function<bool(const Layout&)>;
std::string how_to_fit(const Layout& layout, const LayoutLimits& limits, const HasRoom& has_room,
                       const std::string& otherwise = "recompute activations, or take a smaller batch or model");
bool has_room(const Layout& layout, const OptionsOf& options_of);

}  // namespace chorale
