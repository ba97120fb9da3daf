// The requests that `chorale plan` answers. Each function below checks its request before MPI starts, and throws a usage
// error if the request has no answer. It returns the function that prints the answer and returns the exit code.
//
//   asked by                          function             answer
//   --layout dp2.tp2                  one_layout           memory and traffic of each stage, and the time of a step
//   --layout dp2.tp2 --longest-seq…   longest_sequence     how long sequences can be
//   --layout all --ranks 4            all_layouts          a table with the costs of every legal layout
//   --search --ranks 64 --machine M   fastest_ways         the fastest layouts on a machine of accelerators
//   --table FILE.csv                  published_table      predictions beside published measurements
#pragma once
#include <functional>

#include "experiments/common/command.hpp"
#include "experiments/plan/asked.hpp"

namespace chorale::plan {

using Answer = std::function<int(Session& session)>;
Answer one_layout(AskedPlan& asked);
Answer longest_sequence(AskedPlan& asked);
Answer all_layouts(AskedPlan& asked);
Answer fastest_ways(AskedPlan& asked);
Answer published_table(AskedPlan& asked);

// Scripts learn from the exit code whether a layout fits.
inline int fits_or_not(bool fits) { return static_cast<int>(fits ? Exit::ok : Exit::check); }

}  // namespace chorale::plan
