// Which layout? Every legal layout of a number of ranks is planned by the real code and compared with all others.
//
//   legal_layouts   dp × tp × pp, with and without sp, ZeRO 0 to 3, and every pipeline schedule that fits
//   weigh           three costs of each: memory of the fullest rank, bytes of the one that sends most, the bubble
//   in_order        first layouts that fit; then those that no other layout beats; then by bubble, then by bytes
//
// To add a fourth cost, such as a predicted time: a field here, a term of `no_worse`, the first key of `in_order`, a column
// of the table.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "parallel/plan.hpp"

namespace chorale::plan {

struct Candidate {
  Layout layout;
  std::int64_t memory_bytes = 0, state_bytes = 0;  // the most that a rank holds: at its peak, and between steps
  std::int64_t sent_bytes = 0;                     // in a step, by the rank that sends most; −1: unknown
  double bubble = 0;
  bool fits = true;   // within the memory limit
  std::string rival;  // a layout that is at least as good in all costs; "" if there is none

  bool no_worse(const Candidate& other) const;
};

// All layouts that fit, have consistent options, and for which `wanted` returns true.
std::vector<Layout> legal_layouts(const LayoutLimits& limits, const OptionsOf& options_of,
                                  const std::function<bool(const Layout&)>& wanted);

// The costs of one layout. Those of a long step are extrapolated from two short ones (candidates.cpp).
Candidate weigh(const PlanRequest& request);

struct Choices {
  std::vector<Candidate> rows;
  std::int64_t schedules_left_out = 0;  // beaten by another schedule of the same layout
};
Choices in_order(std::vector<Candidate> candidates, std::int64_t memory_limit);  // limit 0: none
// In text: at most `most_rows` rows (0: all), and a note with the assumptions about backend and algorithms.
std::string table_of(const Choices& choices, const std::string& format, std::int64_t most_rows,
                     const std::string& assumed);  // candidate_table.cpp
std::string decimal_bytes(std::int64_t bytes);     // 1536 → "1.54 kB", as papers count; "?" below 0

}  // namespace chorale::plan
