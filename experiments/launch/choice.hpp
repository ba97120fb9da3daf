// Chooses the layout of the next start from the legal layouts on the live slots. The choice depends only on its arguments,
// so a test can pass any. It comes with its reason, which the user sees.
//
//   1  the layout that the user asked for, if there are enough live slots
//   2  otherwise the layout whose predicted step is fastest, of those that fit in memory
//   3  if the steps of some layouts cannot be predicted, the layout with the least work per rank:
//      1 / (ranks · (1 − bubble)); among equals, the one that sends the fewest bytes
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chorale::launch {

struct Possible {
  std::string layout;  // "dp3.z2"
  std::int64_t ranks = 1, memory_bytes = 0, sent_bytes = 0;
  double bubble = 0;
  double seconds = -1;  // predicted time of a step; −1: none
};

struct Situation {
  std::int64_t live = 1, fewest = 1;  // live slots; --min-ranks
  std::int64_t memory_bytes = 0;      // that a rank is allowed to hold; 0: no limit
  std::string asked = "";             // the layout that the user asked for; "": none
  bool same_layout = false;           // whether only that layout is allowed
};

struct Chosen {
  Possible layout;
  std::string why;
};

// Returns nullopt if no layout is possible now. `why_not` then says why.
std::optional<Chosen> choose(const std::vector<Possible>& possible, const Situation& situation,
                             std::string* why_not = nullptr);

// The time of a step on layout `there`, if a step takes `seconds` on layout `here`.
double scaled(double seconds, const Possible& here, const Possible& there);

// Whether a change of layout saves more time in the remaining steps than it costs.
bool pays(double seconds_here, double seconds_there, std::int64_t steps_left, double restart_seconds);

}  // namespace chorale::launch
