// Which layout? Every legal layout of a number of ranks, planned by the real code and held against all others.
//
//   legal_layouts   dp × tp × pp, with and without sp, ZeRO 0 to 3, and every pipeline schedule that fits
//   weigh           three costs of each: memory of the fullest rank, bytes of the one that sends most, the bubble
//   in_order        what fits first; then what no other equals in all three costs; then by bubble, then by bytes
//
// A predicted time is to become a fourth cost: a field here, a term of `no_worse`, the first key of `in_order`, a column
// of the table.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "parallel/plan.hpp"

namespace chorale::plan {

struct Candidate {
  Layout layout;
  std::int64_t memory_bytes = 0, state_bytes = 0;  // of the rank that holds most: at its peak, and between steps
  std::int64_t sent_bytes = 0;                     // in a step, by the rank that sends most; −1: not known
  double bubble = 0;
  bool fits = true;   // below the memory limit
  std::string rival;  // a layout that is at least as good in all costs; "" where there is none

  bool no_worse(const Candidate& other) const;
};

// In the order of the enumeration. `wanted` narrows it; a layout whose options contradict each other is not legal.
std::vector<Layout> legal_layouts(const LayoutLimits& limits, const OptionsOf& options_of,
                                  const std::function<bool(const Layout&)>& wanted);

// Costs of one layout. A long step is planned as two short ones: see candidates.cpp.
Candidate weigh(const PlanRequest& request);

struct Choices {
  std::vector<Candidate> rows;
  std::int64_t schedules_left_out = 0;  // beaten by another schedule of the same layout
};
Choices in_order(std::vector<Candidate> candidates, std::int64_t memory_limit);  // limit 0: none
// Text has so many rows at most (0: all), and says what is assumed of who carries the bytes.
std::string table_of(const Choices& choices, const std::string& format, std::int64_t most_rows,
                     const std::string& assumed);  // candidate_table.cpp
std::string decimal_bytes(std::int64_t bytes);     // 1536 → "1.54 kB", as papers count; "?" below 0

}  // namespace chorale::plan
