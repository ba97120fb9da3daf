// Two classes that analyze schedules. Lineup numbers the elements of a rank's buffers. Flow matches sends with receives, and
// runs the steps of all ranks in one of the orders that the dependencies allow. The checker (checker.hpp), find_rounds
// (rounds.hpp) and the symbolic run (symbolic_run.hpp) use these classes.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <chorale/schedule.hpp>

namespace chorale {

std::string at(const Schedule& schedule, std::size_t step);  // "rank 3, step 7, output element 4 and on"

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

// Flow matches the sends and receives of all ranks, and runs the steps in one of the orders that the dependencies allow. A
// step begins when all steps in its list `after` have completed and all earlier steps with the same peer and direction have
// begun. A receive completes when the matching sends have begun. With buffered messages, a send completes immediately.
// Without buffering, a send completes when the matching receives have begun.
class Flow {
 public:
  struct Meeting {     // the other end of a message
    int rank, step;    // the peer, and the index of the peer's step
    std::size_t slot;  // this rank's index among the peers of the peer's step
  };
  using Called = std::function<void(std::size_t rank, std::size_t step)>;

  explicit Flow(const std::vector<Schedule>& ranks);
  // Returns the other end of the message for each peer of a step. If no message matches, the rank of the other end is −1.
  const std::vector<Meeting>& meetings(std::size_t rank, std::size_t step) const { return nodes_[rank][step].meetings; }
  const std::string& unmatched() const { return unmatched_; }  // a sent message that is never received; "" if none
  // Runs all steps, and calls `begins` and `ends` for each step. If a step cannot complete, returns the step's rank and
  // index; otherwise returns {−1, −1}.
  std::pair<int, int> run(bool buffered, const Called& begins, const Called& ends) const;

 private:
  struct Node {
    std::vector<Meeting> meetings;
    std::vector<int> dependents;  // steps that wait until this step has completed
    std::vector<int> successors;  // later steps with the same peer and direction, which wait until this step has begun
    int waits = 0;                // number of steps that this step waits for
    bool is_send = false;
  };
  std::vector<std::vector<Node>> nodes_;
  std::string unmatched_;
};

}  // namespace chorale
