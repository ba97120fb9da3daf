// Two tools for the analysis of schedules. Lineup numbers the elements of a rank's buffers. walk() visits the steps of all
// ranks in an order that the dependencies allow.
#pragma once
#include <functional>
#include <utility>

#include "collectives/schedule/step_graph.hpp"

namespace chorale {

// Numbers all elements of a rank consecutively. In an in-place call, input and output share elements.
class Lineup {
 public:
  explicit Lineup(const Schedule& schedule);
  std::size_t size() const { return static_cast<std::size_t>(size_); }
  bool holds(const Range& range) const;
  std::size_t at(Place place, std::int64_t i) const {
    return static_cast<std::size_t>(start_[static_cast<std::size_t>(place)] + i);
  }

 private:
  std::int64_t start_[3], count_[3], size_;
};

// Runs all steps, and calls `begins` and `ends` for each step. A step begins when all links that lead to it allow it
// (StepGraph). A receive completes when the matching sends have begun. With buffered messages, a send completes immediately.
// Without buffering, a send completes when the matching receives have begun. If a step cannot complete, returns the step's
// rank and index; otherwise returns {−1, −1}.
using Walked = std::function<void(std::size_t rank, std::size_t step)>;
std::pair<int, int> walk(const StepGraph& graph, bool buffered, const Walked& begins, const Walked& ends);

}  // namespace chorale
