#include "collectives/analysis/flow.hpp"

#include <algorithm>

#include "src/base/index.hpp"

namespace chorale {

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

std::pair<int, int> walk(const StepGraph& graph, bool buffered, const Walked& begins, const Walked& ends) {
  struct State {
    int waits = 0, meetings = 0;
    bool begun = false, over = false;
  };
  std::vector<std::vector<State>> states;
  std::vector<std::pair<int, int>> touched;  // (rank, index) of each step that might now be able to begin or to end
  const auto is_send = [&](std::size_t r, std::size_t s) { return graph.ranks()[r].steps[s].kind == Kind::send; };
  for (std::size_t r = 0; r < graph.ranks().size(); ++r) {
    auto& mine = states.emplace_back();
    for (std::size_t s = 0; s < graph.steps(r).size(); ++s) {
      const bool ends_alone = buffered && is_send(r, s);
      mine.push_back(
          {graph.steps(r)[s].waits, ends_alone ? 0 : static_cast<int>(graph.meetings(r, s).size()), false, false});
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
    const StepLinks& links = graph.steps(r)[s];
    State& state = states[r][s];
    if (!state.begun && state.waits == 0) {
      state.begun = true;
      begins(r, s);
      release(r, links.successors);
      for (const StepGraph::Meeting& other : graph.meetings(r, s)) {
        if (other.rank < 0 || (buffered && !is_send(r, s))) continue;
        State& partner = states[index(other.rank)][index(other.step)];
        if (--partner.meetings == 0) touched.emplace_back(other.rank, other.step);
      }
    }
    if (state.begun && !state.over && state.meetings == 0) {
      state.over = true;
      ends(r, s);
      release(r, links.dependents);
    }
  }
  for (std::size_t r = 0; r < states.size(); ++r)
    for (std::size_t s = 0; s < states[r].size(); ++s)
      if (!states[r][s].over) return {static_cast<int>(r), static_cast<int>(s)};
  return {-1, -1};
}

}  // namespace chorale
