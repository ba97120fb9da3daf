// Where a rank's elements lie, which send matches which receive, and an order in which the steps of all ranks can run. The
// checker, the rounds and the symbolic run are built on it.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/schedule.hpp"

namespace chorale {

std::string at(const Schedule& schedule, std::size_t step);  // "rank 3, step 7, output element 4 and on"

// All elements of a rank, numbered consecutively. In place, input and output are the same elements.
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

// Matches the sends and receives of all ranks, and runs the steps in a possible order. A step begins when the steps it waits
// for are over and the earlier steps on its channels have begun. A receive is over when its sends have begun. Unless
// messages are buffered, a send too is over only when its receives have begun.
class Flow {
 public:
  struct Meeting {
    int rank, step;
    std::size_t slot;  // this rank's index among that step's peers
  };
  using Called = std::function<void(std::size_t rank, std::size_t step)>;

  explicit Flow(const std::vector<Schedule>& ranks);
  const std::vector<Meeting>& meetings(std::size_t rank, std::size_t step) const { return nodes_[rank][step].meetings; }
  const std::string& unmatched() const { return unmatched_; }  // a message that is sent but never received; "" if none
  // Runs all steps. Returns a step that could not end, as (rank, step), or (−1, −1).
  std::pair<int, int> run(bool buffered, const Called& begins, const Called& ends) const;

 private:
  struct Node {
    std::vector<Meeting> meetings;  // by peer; its rank is −1 if the message is missing
    std::vector<int> dependents;    // steps that wait until this is over
    std::vector<int> successors;    // steps of its channels that wait until this has begun
    int waits = 0;                  // how many steps must be over, or have begun, before this begins
    bool is_send = false;
  };
  std::vector<std::vector<Node>> nodes_;
  std::string unmatched_;
};

}  // namespace chorale
