#include "collectives/backends/message/groups.hpp"

#include <algorithm>
#include <map>

#include "collectives/schedule/step_graph.hpp"
#include "src/base/error.hpp"
#include "src/base/index.hpp"

namespace chorale {
namespace {

constexpr int unknown = -1;

// Assigns a group number to each message, and to each step the number of the group in which the step completes. A step or
// message gets its number once all steps that it waits for have numbers. The search repeats until nothing changes.
class Grouping {
 public:
  explicit Grouping(const std::vector<Schedule>& ranks)
      : ranks_(ranks), messages_(StepGraph(ranks).messages()), of_message_(messages_.size(), unknown) {
    for (const Schedule& schedule : ranks) {
      over_.emplace_back(schedule.steps.size(), unknown);
      left_.emplace_back(schedule.steps.size(), 0);
    }
    for (const Message& message : messages_) {
      ++left(message.from, message.send);
      ++left(message.to, message.recv);
    }
    for (bool moved = true; moved;) moved = number_locals() | number_messages();
    require(std::ranges::find(of_message_, unknown) == of_message_.end(),
            "messages wait for one another in a cycle, so they cannot be arranged in groups");
  }

  std::vector<MessageGroup> of(int rank) const {
    const auto& steps = ranks_[index(rank)].steps;
    std::map<int, MessageGroup> groups;
    std::vector<int> first{0};  // indexed by step: index of the step's first message
    for (std::size_t s = 0; s < steps.size(); ++s) {
      first.push_back(first.back() + static_cast<int>(steps[s].peers.size()));
      const bool is_done_here = steps[s].kind != Kind::send && steps[s].kind != Kind::recv;
      if (is_done_here) groups[over_[index(rank)][s]].steps.push_back(static_cast<int>(s));
    }
    const auto add = [&](int group, int step, int peer) {
      const auto& peers = steps[index(step)].peers;
      const auto which = std::ranges::find(peers, peer) - peers.begin();
      groups[group].messages.push_back(first[index(step)] + static_cast<int>(which));
    };
    for (std::size_t m = 0; m < messages_.size(); ++m) {
      const Message& message = messages_[m];
      if (message.from == rank) add(of_message_[m], message.send, message.to);
      if (message.to == rank) add(of_message_[m], message.recv, message.from);
    }
    for (auto& [number, group] : groups) std::ranges::sort(group.messages);
    std::vector<MessageGroup> in_order;
    for (auto& [number, group] : groups) in_order.push_back(std::move(group));
    return in_order;
  }

 private:
  int& left(int rank, int step) { return left_[index(rank)][index(step)]; }

  // Returns the number of the group after which all predecessors of a step have completed.
  int ready(int rank, int step) const {
    int latest = 0;
    for (const int before : ranks_[index(rank)].steps[index(step)].after) {
      const int known = over_[index(rank)][index(before)];
      if (known == unknown) return unknown;
      latest = std::max(latest, known);
    }
    return latest;
  }

  bool number_locals() {
    bool moved = false;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (std::size_t s = 0; s < over_[r].size(); ++s)
        if (over_[r][s] == unknown && ranks_[r].steps[s].peers.empty()) {
          over_[r][s] = ready(static_cast<int>(r), static_cast<int>(s));
          moved = moved || over_[r][s] != unknown;
        }
    return moved;
  }

  // Messages from one rank to another get ascending numbers in the order of their steps, because messages are matched in the
  // order of their steps.
  bool number_messages() {
    bool moved = false;
    std::map<std::pair<int, int>, int> before;
    for (std::size_t m = 0; m < messages_.size(); ++m) {
      const Message& message = messages_[m];
      int& on_line = before[{message.from, message.to}];
      if (of_message_[m] == unknown && on_line != unknown) {
        const int from = ready(message.from, message.send), to = ready(message.to, message.recv);
        if (from != unknown && to != unknown) {
          of_message_[m] = std::max(std::max(from, to) + 1, on_line);
          finish(message.from, message.send, of_message_[m]);
          finish(message.to, message.recv, of_message_[m]);
          moved = true;
        }
      }
      on_line = of_message_[m];
    }
    return moved;
  }

  // A step has completed when its last message has completed.
  void finish(int rank, int step, int group) {
    int& latest = latest_[{rank, step}];
    latest = std::max(latest, group);
    if (--left(rank, step) == 0) over_[index(rank)][index(step)] = latest;
  }

  const std::vector<Schedule>& ranks_;
  const std::vector<Message> messages_;
  std::vector<int> of_message_;
  // over_[rank][step] is the number of the group in which the step completes. left_[rank][step] counts the step's messages
  // that are not in a group yet.
  std::vector<std::vector<int>> over_, left_;
  std::map<std::pair<int, int>, int> latest_;
};

}  // namespace

std::vector<MessageGroup> in_groups(const std::vector<Schedule>& ranks, int rank) { return Grouping(ranks).of(rank); }

}  // namespace chorale
