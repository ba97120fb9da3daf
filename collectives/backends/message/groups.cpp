#include "collectives/backends/message/groups.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "collectives/analysis/flow.hpp"
#include "src/base/error.hpp"
#include "src/base/index.hpp"

namespace chorale {
namespace {

constexpr int unknown = -1;

// Assigns a group number to each message, and to each step the number of the group in which the step completes.
class Grouping {
 public:
  explicit Grouping(const std::vector<Schedule>& ranks) : graph_(ranks) {
    graph_.messages();  // throws if a message has only one end
    for (const Schedule& schedule : ranks) {
      ready_.emplace_back(schedule.steps.size(), unknown);
      over_.emplace_back(schedule.steps.size(), unknown);
      for (auto& of = of_message_.emplace_back(); const Step& step : schedule.steps)
        of.emplace_back(step.peers.size(), unknown);
    }
    const auto stuck = walk(
        graph_, false, [this](std::size_t r, std::size_t s) { begin(r, s); },
        [this](std::size_t r, std::size_t s) {
          for (const int group : of_message_[r][s]) over_[r][s] = std::max(over_[r][s], group);
          if (of_message_[r][s].empty()) over_[r][s] = ready_[r][s];
        });
    require(stuck.first < 0, "messages wait for one another in a cycle, so they cannot be arranged in groups");
  }

  std::vector<MessageGroup> of(int rank) const {
    const auto& steps = graph_.ranks()[index(rank)].steps;
    std::map<int, MessageGroup> groups;
    int message = 0;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const bool is_done_here = steps[s].kind != Kind::send && steps[s].kind != Kind::recv;
      if (is_done_here) groups[over_[index(rank)][s]].steps.push_back(static_cast<int>(s));
      for (const int group : of_message_[index(rank)][s]) groups[group].messages.push_back(message++);
    }
    std::vector<MessageGroup> in_order;
    for (auto& [number, group] : groups) in_order.push_back(std::move(group));
    return in_order;
  }

 private:
  // A step can begin after the groups of all steps that it waits for. A message gets its number once both of its ends can
  // begin. Messages from one rank to another get ascending numbers, because they are matched in the order of their steps.
  void begin(std::size_t r, std::size_t s) {
    const Step& step = graph_.ranks()[r].steps[s];
    int& ready = ready_[r][s] = 0;
    for (const int before : step.after) ready = std::max(ready, over_[r][index(before)]);
    for (std::size_t k = 0; k < step.peers.size(); ++k) {
      const StepGraph::Meeting& other = graph_.meetings(r, s)[k];
      if (other.rank < 0 || ready_[index(other.rank)][index(other.step)] == unknown) continue;
      const std::pair here{static_cast<int>(r), other.rank};
      int& last = last_[step.kind == Kind::send ? here : std::pair{here.second, here.first}];
      last = std::max(std::max(ready, ready_[index(other.rank)][index(other.step)]) + 1, last);
      of_message_[r][s][k] = of_message_[index(other.rank)][index(other.step)][other.slot] = last;
    }
  }

  StepGraph graph_;
  std::vector<std::vector<int>> ready_, over_;             // indexed by rank and step: the groups after which it can begin,
                                                           // and in which it completes
  std::vector<std::vector<std::vector<int>>> of_message_;  // indexed by rank, step and peer
  std::map<std::pair<int, int>, int> last_;                // (from, to) → the group of the newest message
};

}  // namespace

std::vector<MessageGroup> in_groups(const std::vector<Schedule>& ranks, int rank) { return Grouping(ranks).of(rank); }

}  // namespace chorale
