// Searches for the fastest way (training configuration) to train a model on a system of accelerators. space.hpp lists the
// ways.
//
//   1  estimate   all blocks are alike, so two models of one and two blocks give closed forms for the time and memory of all
//   2  prune      ways that do not fit in memory are left out
//   3  execute    ways with the fastest estimates are planned and simulated exactly, by the real code: at most three per
//                 division of the ranks, at least twelve in total, and all that can still win by their estimate
//
// The table (ways_table.hpp) shows the executed ways, fastest first, and why the slower ones lose. If the user names a
// layout to be explained (explained.hpp), the layout is executed even if the search left it out.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "experiments/common/command.hpp"
#include "experiments/plan/whole_training.hpp"
#include "parallel/prediction/system_step.hpp"

namespace chorale::plan {

struct SearchRequest {
  StepRequest step;  // the model, batch and system; the search sets layout, micro-batch and recomputation
  std::int64_t ranks = 1;
  double memory = 0;             // bytes that a rank is allowed to use
  double capacity = 0;           // the given limit, or the accelerator's memory; the table shows bytes as a share of it
  std::int64_t micro_batch = 0;  // 0: the search chooses it
  WholeTraining whole = {};
  std::function<bool(const Layout&)> wanted;  // whether the flags allow a layout
  std::size_t executed = 12, rows = 0;        // executed: minimum number of ways to execute; rows: number to show (0: all)
  std::vector<Layout> explained = {};         // one layout to compare with the fastest, or two to compare with each other
  std::string assumed = "";
};

// The mean error of predicted steps is 1 to 8 % in a published table (docs/planner.md). If the times of two ways differ by
// less than this error, the order of the two ways is therefore unknown.
inline constexpr double planner_error = 0.08;
// Estimates differ from executed steps by up to this share. A way can therefore still win if its estimate is within this
// share of the fastest estimate.
inline constexpr double estimate_error = 0.1;

struct Found {
  Layout layout;
  std::int64_t micro_batch = 1;
  Recompute recompute = Recompute::none;
  double estimate = 0;             // time of a step in seconds, by the closed form
  double bytes = 0;                // maximum memory of a rank: estimated, or planned once the way is executed
  PredictedStep step;              // known once the way is executed
  std::string why_recompute = "";  // "recompute full, because selective would need …", for an explained way
  std::string name() const;        // "dp4.tp8.pp8, micro-batch 1, recompute full"
};

struct SearchResult {
  std::vector<Found> best;  // executed, fastest first
  std::size_t considered = 0, too_large = 0;
};

// Returns the table, followed by the explained layouts.
std::string print_search(const SearchRequest& request, const std::string& format, const Session& session);

}  // namespace chorale::plan
