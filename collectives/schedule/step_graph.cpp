#include "collectives/schedule/step_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "src/base/error.hpp"
#include "src/base/index.hpp"

namespace chorale {

std::string at(const Schedule& schedule, std::size_t s) {
  constexpr const char* lineup[] = {"input", "output", "scratch"};
  const Step& step = schedule.steps[s];
  const Range range = step.kind != Kind::send ? step.dst : step.src.empty() ? Range{} : step.src[0];
  return fmt::format("rank {}, step {}, {} element {} and on", schedule.problem().rank, s,
                     lineup[static_cast<std::size_t>(range.place)], range.first);
}

std::vector<StepLinks> links_of(const std::vector<Step>& steps) {
  std::vector<StepLinks> links(steps.size());
  std::map<std::pair<bool, int>, int> last_of_channel;  // (is a send, peer) → the newest such step
  for (int s = 0; s < static_cast<int>(steps.size()); ++s) {
    const Step& step = steps[index(s)];
    int& waits = links[index(s)].waits;
    for (const int before : step.after) links[index(before)].dependents.push_back(s);
    waits = static_cast<int>(step.after.size());
    for (const int peer : step.peers) {
      const auto [last, is_first] = last_of_channel.try_emplace({step.kind == Kind::send, peer}, s);
      if (is_first) continue;
      links[index(std::exchange(last->second, s))].successors.push_back(s);
      ++waits;
    }
  }
  return links;
}

StepGraph::StepGraph(const std::vector<Schedule>& ranks) : ranks_(ranks) {
  std::map<std::pair<int, int>, std::pair<std::vector<Meeting>, std::vector<Meeting>>> channels;  // → sends, receives
  for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
    const auto& steps = ranks[index(r)].steps;
    links_.push_back(links_of(steps));
    auto& meetings = meetings_.emplace_back(steps.size());
    for (int s = 0; s < static_cast<int>(steps.size()); ++s) {
      const Step& step = steps[index(s)];
      meetings[index(s)].resize(step.peers.size(), {-1, -1, 0});
      for (std::size_t k = 0; k < step.peers.size(); ++k) {
        const bool is_send = step.kind == Kind::send;
        auto& [sends, receives] = channels[is_send ? std::pair(r, step.peers[k]) : std::pair(step.peers[k], r)];
        (is_send ? sends : receives).push_back({r, s, k});
      }
    }
  }
  for (const auto& [channel, ends] : channels) {
    const auto& [sends, receives] = ends;
    for (std::size_t i = 0; i < std::min(sends.size(), receives.size()); ++i) {
      meetings_[index(receives[i].rank)][index(receives[i].step)][receives[i].slot] = sends[i];
      meetings_[index(sends[i].rank)][index(sends[i].step)][sends[i].slot] = receives[i];
    }
    if (sends.size() > receives.size() && unmatched_.empty())
      unmatched_ = fmt::format("rank {}: {} messages to rank {} are never received; {}", channel.first,
                               sends.size() - receives.size(), channel.second,
                               at(ranks[index(channel.first)], index(sends[receives.size()].step)));
  }
}

std::vector<Message> StepGraph::messages() const {
  require(unmatched_.empty(), "{}", unmatched_);
  std::vector<Message> messages;
  for (int r = 0; r < static_cast<int>(ranks_.size()); ++r)
    for (int s = 0; s < static_cast<int>(meetings_[index(r)].size()); ++s)
      for (const Meeting& other : meetings_[index(r)][index(s)]) {
        require(other.rank >= 0, "rank {}, step {}: waits for a message that no rank sends", r, s);
        if (ranks_[index(r)].steps[index(s)].kind == Kind::send) messages.push_back({r, other.rank, s, other.step});
      }
  return messages;
}

}  // namespace chorale
