// Helps to choose a layout. Plans every legal layout of a number of ranks by executing the real code, and compares the
// plans.
//
//   legal_layouts   lists every split of the ranks, with and without sp, with ZeRO 0 to 3 and hpz, and with every pipeline
//                   schedule that fits
//   weigh           finds four costs of a layout: the maximum memory of a rank, the maximum bytes that a rank sends, the
//                   bubble, and the time of a step if the machine file has prices
//   in_order        sorts layouts: those that fit in memory come first; among them, those that no layout dominates; then
//                   by time, bubble and bytes sent
//
// To add a cost, add a field here, a term to `no_worse`, a key to the sorting in `in_order` and a column to the table.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "parallel/plan/plan.hpp"
#include "parallel/plan/room.hpp"

namespace chorale::plan {

struct Candidate {
  Layout layout;
  std::int64_t memory_bytes = 0, state_bytes = 0;  // maximum over the ranks, at the memory peak and between steps
  std::int64_t sent_bytes = 0;                     // maximum bytes that a rank sends in a step; −1: unknown
  double bubble = 0;                               // idle fraction of all stages' time
  double seconds = -1;  // predicted time of a step; −1 if not predicted, for the reason `why_not`
  std::string why_not = "";
  bool fits = true;   // whether memory_bytes is within the limit
  double share = 0;   // memory_bytes as a share of the limit; 0 without a limit
  std::string rival;  // a layout that is at least as good in all costs; "" if there is none

  bool no_worse(const Candidate& other) const;
};

// All layouts within `limits` whose options are consistent and for which `wanted` returns true.
std::vector<Layout> legal_layouts(const LayoutLimits& limits, const OptionsOf& options_of,
                                  const std::function<bool(const Layout&)>& wanted);

// Finds the costs of one layout. The costs of a step with many micro-batches are extrapolated from two shorter steps.
Candidate weigh(const PlanRequest& request);

struct Choices {
  std::vector<Candidate> rows;
  std::int64_t schedules_left_out = 0;  // candidates that are not in `rows`, because the same layout with a different
                                        // schedule is at least as good
};
Choices in_order(std::vector<Candidate> candidates, std::int64_t memory_limit);  // limit 0: none
struct Accuracy {
  double error = 0;    // times within this error of the fastest are marked "~"; if it is 0, no time is marked
  std::string origin;  // where the predicted times come from
};
// The table in the given format, with at most `most_rows` rows (0: all). In text, notes follow the table; they include
// `assumed`, the assumptions about backends and algorithms.
std::string table_of(const Choices& choices, const std::string& format, std::int64_t most_rows, const std::string& assumed,
                     const Accuracy& accuracy);  // candidate_table.cpp

}  // namespace chorale::plan
