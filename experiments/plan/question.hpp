// A `Question` is a kind of request that `chorale plan` answers. check() runs before MPI starts, and refuses a request that
// has no answer.
//
//   asked by                          question             answer
//   --layout dp2.tp2                  one_layout           memory and traffic of each stage, and the time of a step
//   --layout dp2.tp2 --longest-seq…   longest_sequence     how long sequences can be
//   --layout all --ranks 4            all_layouts          a table with the costs of every legal layout
//   --search --ranks 64 --machine M   fastest_ways         the fastest layouts on a machine of accelerators
//   --table FILE.csv                  published_table      predictions beside published measurements
#pragma once
#include <memory>

#include "experiments/common/command.hpp"
#include "experiments/plan/asked.hpp"

namespace chorale::plan {

class Question {
 public:
  virtual ~Question() = default;
  virtual void check() = 0;                  // throws usage errors
  virtual int answer(Session& session) = 0;  // prints the answer, and returns the exit code
};

using QuestionPointer = std::unique_ptr<Question>;
QuestionPointer one_layout(AskedPlan& asked);
QuestionPointer longest_sequence(AskedPlan& asked);
QuestionPointer all_layouts(AskedPlan& asked);
QuestionPointer fastest_ways(AskedPlan& asked);
QuestionPointer published_table(AskedPlan& asked);

// Scripts learn from the exit code whether a layout fits.
inline int fits_or_not(bool fits) { return static_cast<int>(fits ? Exit::ok : Exit::check); }

// Checks that the requested layout is legal and suits the machine and the hosts. Returns a request with this layout, in
// which every `auto` is replaced. `choices` has a line with the reason for each replacement. `any_length`: the sequence
// length is not known yet, because a search will find it.
struct PlacedRequest {
  PlanRequest request;
  std::vector<std::string> choices;
};
PlacedRequest place(AskedPlan& asked, bool any_length);

}  // namespace chorale::plan
