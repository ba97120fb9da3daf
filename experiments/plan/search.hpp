// Searches for the fastest way to train a model on a system of accelerators: divisions of the ranks among tp, pp, cp, dp and
// ep, with sp, ZeRO stages, hybrid shards, chunks, schedules (1f1b, interleaved, zb-h1), micro-batches and recomputation.
//
//   1  estimate   blocks are alike, so two models of one and two blocks tell the time and memory of all (a closed form)
//   2  prune      what does not fit in memory
//   3  execute    the fastest estimates, up to three of each division of the ranks, are planned and simulated exactly, by
//                 the real code
//
// The table shows the best, and why each of them loses.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "experiments/plan/whole_training.hpp"
#include "parallel/planner/step.hpp"
#include "src/base/clock.hpp"

namespace chorale::plan {

struct SearchRequest {
  StepRequest step;  // the model, batch and system; its layout, micro-batch and recomputation are searched for
  std::int64_t ranks = 1;
  double memory = 0;             // bytes that a rank may use
  std::int64_t micro_batch = 0;  // 0: searched for
  WholeTraining whole = {};
  std::function<bool(const Layout&)> wanted;  // which layouts the flags allow
  std::size_t executed = 12;
};

struct Found {
  Layout layout;
  std::int64_t micro_batch = 1;
  Remake remake = Remake::none;
  double estimate = 0;       // seconds, by the closed form
  double bytes = 0;          // of the fullest rank: estimated, and planned once it is executed
  PredictedStep step;        // once it is executed
  std::string name() const;  // "dp4.tp8.pp8, micro-batch 1, recompute full"
};

// Prints the table, and two ways side by side if `explained` names them: "A,B".
void print_search(const SearchRequest& request, const std::string& explained, const std::string& format, Clock& clock);

}  // namespace chorale::plan
