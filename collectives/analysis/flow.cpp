#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "collectives/analysis/flow.hpp"
#include "src/base/index.hpp"

namespace chorale {
namespace {}  // namespace

std::string at(const Schedule& schedule, std::size_t s) {
  constexpr const char* lineup[] = {"input", "output", "scratch"};
  const Step& step = schedule.steps[s];
  const Range range = step.kind != Kind::send ? step.dst : step.src.empty() ? Range{} : step.src[0];
  return fmt::format("rank {}, step {}, {} element {} and on", schedule.problem().rank, s,
                     lineup[static_cast<std::size_t>(range.place)], range.first);
}

Lineup::Lineup(const Schedule& schedule) {
  const Problem& p = schedule.problem();
  const std::int64_t in = p.input_count(), out = p.output_count(), scratch = schedule.scratch_count();
  const std::int64_t in_end = p.input_home() + in, out_end = p.output_home() + out;
  const std::int64_t buffers = p.in_place ? std::max(in_end, out_end) : in + out;
  const std::int64_t starts[] = {p.in_place ? p.input_home() : 0, p.in_place ? p.output_home() : in, buffers};
  const std::int64_t counts[] = {in, out, scratch};
  std::copy_n(starts, 3, start_);
  std::copy_n(counts, 3, count_);
  size_ = buffers + scratch;
}

bool Lineup::holds(const Range& range) const {
  const std::int64_t count = count_[static_cast<std::size_t>(range.place)];
  return range.count == 0 || (range.first >= 0 && range.count > 0 && range.first + range.count <= count);
}

Flow::Flow(const std::vector<Schedule>& ranks) {
  using Ends = std::vector<Meeting>;
  std::map<std::pair<int, int>, std::pair<Ends, Ends>> channels;  // (from, to) → (sends, receives)
  for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
    const auto& steps = ranks[index(r)].steps;
    auto& nodes = nodes_.emplace_back(steps.size());
    for (int s = 0; s < static_cast<int>(steps.size()); ++s) {
      const Step& step = steps[index(s)];
      Node& node = nodes[index(s)];
      node.is_send = step.kind == Kind::send;
      node.meetings.resize(step.peers.size(), {-1, -1, 0});
      node.waits = static_cast<int>(step.after.size());
      for (const int before : step.after) nodes[index(before)].dependents.push_back(s);
      for (std::size_t k = 0; k < step.peers.size(); ++k) {
        const int peer = step.peers[k];
        auto& [sends, receives] = channels[node.is_send ? std::pair(r, peer) : std::pair(peer, r)];
        auto& ours = node.is_send ? sends : receives;
        if (!ours.empty()) {
          nodes[index(ours.back().step)].successors.push_back(s);
          ++node.waits;
        }
        ours.push_back({r, s, k});
      }
    }
  }
  for (const auto& [channel, ends] : channels) {
    const auto& [sends, receives] = ends;
    for (std::size_t i = 0; i < receives.size(); ++i) {
      const Meeting& to = receives[i];
      if (i >= sends.size()) break;  // this receive waits forever, which run() detects
      const Meeting& from = sends[i];
      nodes_[index(to.rank)][index(to.step)].meetings[to.slot] = from;
      nodes_[index(from.rank)][index(from.step)].meetings[from.slot] = to;
    }
    if (sends.size() > receives.size() && unmatched_.empty())
      unmatched_ = fmt::format("rank {}: {} messages to rank {} are never received; {}", channel.first,
                               sends.size() - receives.size(), channel.second,
                               at(ranks[index(channel.first)], static_cast<std::size_t>(sends[receives.size()].step)));
  }
}

std::pair<int, int> Flow::run(bool buffered, const Called& begins, const Called& ends) const {
  struct State {
    int waits = 0, meetings = 0;
    bool begun = false, over = false;
  };
  std::vector<std::vector<State>> states;
  std::vector<std::pair<int, int>> touched;  // (rank, index) of each step that might now be able to begin or to end
  for (std::size_t r = 0; r < nodes_.size(); ++r) {
    auto& mine = states.emplace_back();
    for (std::size_t s = 0; s < nodes_[r].size(); ++s) {
      const Node& node = nodes_[r][s];
      const bool ends_alone = buffered && node.is_send;
      mine.push_back({node.waits, ends_alone ? 0 : static_cast<int>(node.meetings.size()), false, false});
      touched.emplace_back(r, s);
    }
  }
  const auto release = [&](std::size_t r, const std::vector<int>& steps) {
    for (const int step : steps)
      if (--states[r][index(step)].waits == 0) touched.emplace_back(r, step);
  };
  while (!touched.empty()) {
    const auto r = index(touched.back().first), s = index(touched.back().second);
    touched.pop_back();
    const Node& node = nodes_[r][s];
    State& state = states[r][s];
    if (!state.begun && state.waits == 0) {
      state.begun = true;
      begins(r, s);
      release(r, node.successors);
      for (const Meeting& other : node.meetings) {
        if (other.rank < 0 || (buffered && !node.is_send)) continue;
        State& partner = states[index(other.rank)][index(other.step)];
        if (--partner.meetings == 0) touched.emplace_back(other.rank, other.step);
      }
    }
    if (state.begun && !state.over && state.meetings == 0) {
      state.over = true;
      ends(r, s);
      release(r, node.dependents);
    }
  }
  for (std::size_t r = 0; r < states.size(); ++r)
    for (std::size_t s = 0; s < states[r].size(); ++s)
      if (!states[r][s].over) return {static_cast<int>(r), static_cast<int>(s)};
  return {-1, -1};
}

}  // namespace chorale
