// Checks whether the plan of a layout fits in a memory limit. If it does not, suggests flags and layouts that fit.
//
//   shortage_of    the rank with the highest memory use, and the category with which it exceeds the limit
//   require_room   throws an error that names flags and layouts with which the model fits
//   has_room       plans each stage, unless a lower bound on its bytes already exceeds the limit
#pragma once
#include <functional>
#include <optional>
#include <string>

#include <chorale/training.hpp>
#include "parallel/layout/layout.hpp"
#include "parallel/layout/layout_rules.hpp"
#include "src/base/error.hpp"

namespace chorale {

// Thrown if a layout does not fit in memory. A suite records this error as the result of the layout; the suite does not
// treat the error as a mistake in its own options. All ranks of a run throw this error together, so MPI can be finalized.
class NoRoom : public Error {
  using Error::Error;
};

// The first two lines of the error. They name the memory category with which a rank exceeds its limit, and the numbers of
// bytes.
struct Shortage {
  std::string what, numbers;
};
using OptionsOf = std::function<TrainingOptions(const Layout&)>;

// Returns nullopt if all ranks stay within the limit, or if no limit is set. Only one rank of each stage is planned: the
// rank with the last shard and the most tokens. A rank that is not planned can need one more block of the vocabulary. If
// that block does not fit, the ledger of the run refuses the allocation.
std::optional<Shortage> shortage_of(const Layout& layout, const OptionsOf& options_of, const std::string& limit_is);
// Throws NoRoom if a rank has too little memory. The error suggests layouts that fit in memory.
void require_room(const Layout& layout, const LayoutLimits& limits, const OptionsOf& options_of,
                  const std::string& limit_is = "the limit is");
// Returns the error's third line, which names up to three layouts that fit in memory with the same number of ranks. If no
// such layout exists, the number of ranks is doubled, with the same memory per rank, until a layout fits. If no layout is
// found, returns `otherwise`.
using HasRoom = std::function<bool(const Layout&)>;
std::string how_to_fit(const Layout& layout, const LayoutLimits& limits, const HasRoom& has_room,
                       const std::string& otherwise = "recompute activations, or take a smaller batch or model");
bool has_room(const Layout& layout, const OptionsOf& options_of);

}  // namespace chorale
