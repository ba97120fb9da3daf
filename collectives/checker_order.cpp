// The half of the checker that looks at order alone: hazards within a rank, and deadlock between ranks.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "collectives/checker.hpp"

namespace chorale {
namespace {

std::string at(int rank, std::size_t step) { return fmt::format("rank {}, step {}", rank, step); }

}  // namespace

// Two steps of a rank that touch the same element, one of them writing, must be ordered by `after`.
std::string find_hazard(const Schedule& schedule) {
  const auto& steps = schedule.steps;
  std::vector<std::vector<bool>> before(steps.size(),
                                        std::vector<bool>(steps.size(), false));  // before[b][a]: a ends before b
  for (std::size_t b = 0; b < steps.size(); ++b) {
    for (const int a : steps[b].after) {
      if (a < 0 || static_cast<std::size_t>(a) >= b)
        return fmt::format("{}: waits for step {}, which does not stand before it", at(schedule.problem().rank, b), a);
      const auto& earlier = before[static_cast<std::size_t>(a)];
      for (std::size_t i = 0; i < b; ++i) before[b][i] = before[b][i] || earlier[i];
      before[b][static_cast<std::size_t>(a)] = true;
    }
    for (std::size_t a = 0; a < b; ++a)
      if (!before[b][a] && conflict(schedule.problem(), steps[a], steps[b]))
        return fmt::format("{}: touches what step {} touches, and does not wait for it", at(schedule.problem().rank, b), a);
  }
  return "";
}

// Under unbuffered sends a send ends only when its receive has begun, and the other way round. Steps begin when those they
// wait for have ended; whoever is left when nothing can begin or end any more is deadlocked.
std::string find_deadlock(const std::vector<Schedule>& ranks) {
  std::map<std::pair<int, int>, std::vector<std::pair<int, int>>> sends, receives;  // channel → (rank, step), in order
  for (const Schedule& schedule : ranks)
    for (std::size_t s = 0; s < schedule.steps.size(); ++s)
      for (const int peer : schedule.steps[s].peers) {
        const int rank = schedule.problem().rank;
        const bool is_send = schedule.steps[s].kind == Kind::send;
        (is_send ? sends[{rank, peer}] : receives[{peer, rank}]).emplace_back(rank, static_cast<int>(s));
      }
  std::vector<std::vector<std::vector<std::pair<int, int>>>> partners;
  std::vector<std::vector<char>> begun, over;
  for (const Schedule& schedule : ranks) {
    partners.emplace_back(schedule.steps.size());
    begun.emplace_back(schedule.steps.size(), 0);
    over.emplace_back(schedule.steps.size(), 0);
  }
  const auto index = [](int i) { return static_cast<std::size_t>(i); };
  for (const auto& [channel, sent] : sends)
    for (std::size_t i = 0; i < std::min(sent.size(), receives[channel].size()); ++i) {
      const auto [sr, ss] = sent[i];
      const auto [rr, rs] = receives[channel][i];
      partners[index(sr)][index(ss)].emplace_back(rr, rs);
      partners[index(rr)][index(rs)].emplace_back(sr, ss);
    }
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < ranks.size(); ++r)
      for (std::size_t s = 0; s < begun[r].size(); ++s) {
        const auto& after = ranks[r].steps[s].after;
        const auto is_over = [&](int a) { return over[r][index(a)] != 0; };
        if (!begun[r][s] && std::all_of(after.begin(), after.end(), is_over)) begun[r][s] = moved = true;
        const auto has_begun = [&](const auto& other) { return begun[index(other.first)][index(other.second)] != 0; };
        if (begun[r][s] && !over[r][s] && std::all_of(partners[r][s].begin(), partners[r][s].end(), has_begun))
          over[r][s] = moved = true;
      }
  }
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (std::size_t s = 0; s < over[r].size(); ++s)
      if (!over[r][s]) return fmt::format("{}: deadlock when sends wait for their receives", at(static_cast<int>(r), s));
  return "";
}

}  // namespace chorale
