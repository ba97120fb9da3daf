// Searches for the fastest way to train a model on a system of accelerators (space.hpp says which ways there are).
//
//   1  estimate   all blocks are alike, so two models of one and two blocks give closed forms for the time and memory of all
//   2  prune      ways that do not fit in memory are left out
//   3  execute    the fastest estimates, up to three of each division of the ranks, are planned and simulated exactly, by
//                 the real code: at least twelve, and all whose estimate may still win
//
// The table (ways_table.hpp) shows what was executed, fastest first, and why the others lose. A layout that is named to be
// explained (explained.hpp) is executed too, even if the search left it out.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/common/command.hpp"
#include "experiments/plan/whole_training.hpp"
#include "parallel/planner/step.hpp"

namespace chorale::plan {

struct SearchRequest {
  StepRequest step;  // the model, batch and system; its layout, micro-batch and recomputation are searched for
  std::int64_t ranks = 1;
  double memory = 0;    // bytes that a rank may use
  double capacity = 0;  // the table shows bytes as a share of this: the limit that was given, or the accelerator's memory
  std::int64_t micro_batch = 0;  // 0: searched for
  WholeTraining whole = {};
  std::function<bool(const Layout&)> wanted;  // which layouts the flags allow
  std::size_t executed = 12, rows = 0;        // the fewest ways to execute; rows to show, 0: all that were executed
  std::vector<Layout> explained = {};         // one layout to compare with the fastest, or two to compare with each other
  std::string assumed = "";
};

// Predicted steps differ from published ones by 1 to 8 % in the mean of a table (docs/planner.md). So the order of two ways
// whose times differ by less is not known.
inline constexpr double planner_error = 0.08;
// Estimates differ from executed steps by up to this share. So ways whose estimates are within it of the fastest may still
// win.
inline constexpr double estimate_error = 0.1;

struct Found {
  Layout layout;
  std::int64_t micro_batch = 1;
  Recompute recompute = Recompute::none;
  double estimate = 0;             // seconds, by the closed form
  double bytes = 0;                // memory of the fullest rank: estimated, then planned once it is executed
  PredictedStep step;              // known once it is executed
  std::string why_recompute = "";  // "recompute full, because selective would need …", of a way that is explained
  std::string name() const;        // "dp4.tp8.pp8, micro-batch 1, recompute full"
};

inline constexpr const char* recompute_words[] = {"none", "selective", "full"};

struct SearchResult {
  std::vector<Found> best;  // executed, fastest first
  std::size_t considered = 0, too_large = 0;
};

// The table, and below it the explained layouts.
std::string print_search(const SearchRequest& request, const std::string& format, const Session& session);

}  // namespace chorale::plan
