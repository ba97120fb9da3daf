// The steps of all ranks as one graph. It is built once, and everything that examines, prices or runs schedules walks it.
//
//   rank 0   send a ──▶ send b        dependents   steps of the same rank that wait until a step has completed
//              ╎           ╎          successors   later steps of the rank with the same peer and direction: they wait
//              ▼           ▼                       until a step has begun, because messages are matched in their order
//   rank 1   recv a ──▶ recv b        meetings     the other ends of a step's messages
//
// The i-th send of rank a to rank b meets the i-th receive of rank b from rank a.
#pragma once
#include <string>
#include <vector>

#include <chorale/schedule.hpp>

namespace chorale {

std::string at(const Schedule& schedule, std::size_t step);  // "rank 3, step 7, output element 4 and on"

struct StepLinks {
  std::vector<int> dependents, successors;  // a step can succeed another one in several channels
  int waits = 0;                            // number of links that lead to this step
};
std::vector<StepLinks> links_of(const std::vector<Step>& steps);

struct Message {
  int from = 0, to = 0;
  int send = 0, recv = 0;  // index of the send step on rank `from`; index of the receiving step on rank `to`
};

class StepGraph {
 public:
  struct Meeting {     // the other end of a message
    int rank, step;    // the peer, and the index of the peer's step; −1 if no message matches
    std::size_t slot;  // this rank's index among the peers of the peer's step
  };

  explicit StepGraph(const std::vector<Schedule>& ranks);  // `ranks` must outlive the graph
  explicit StepGraph(std::vector<Schedule>&&) = delete;
  const std::vector<Schedule>& ranks() const { return ranks_; }
  const std::vector<StepLinks>& steps(std::size_t rank) const { return links_[rank]; }
  const std::vector<Meeting>& meetings(std::size_t rank, std::size_t step) const { return meetings_[rank][step]; }
  const std::string& unmatched() const { return unmatched_; }  // a sent message that is never received; "" if none
  // All messages, ordered by sender, step and peer. Throws if a send has no receive, or if a receive has no send.
  std::vector<Message> messages() const;

 private:
  const std::vector<Schedule>& ranks_;
  std::vector<std::vector<StepLinks>> links_;
  std::vector<std::vector<std::vector<Meeting>>> meetings_;  // one per peer of a step
  std::string unmatched_;
};

}  // namespace chorale
