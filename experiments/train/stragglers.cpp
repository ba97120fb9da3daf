#include "experiments/train/stragglers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/text.hpp"

namespace chorale::train {
namespace {

constexpr std::size_t window_steps = 10;
constexpr double slow_ratio = 1.7;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double busy_in(const StepResult& result) { return result.data + result.forward + result.backward + result.optimizer; }

}  // namespace

Stragglers::Stragglers(const PlanRequest& request) {
  const auto ranks = static_cast<std::size_t>(request.layout.ranks());
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto number = static_cast<std::int64_t>(rank);
    place_.emplace_back(stage_of(request.layout, number), context_rank_of(request.layout, number));
  }
  work_.assign(ranks, 1), busy_.resize(ranks), named_.resize(ranks);
  const auto is_alone = [&](const auto& place) { return std::ranges::count(place_, place) == 1; };
  if (ranks == 1 || std::ranges::none_of(place_, is_alone)) return;
  for (std::size_t rank = 0; rank < ranks; ++rank) work_[rank] = plan_rank(request, static_cast<int>(rank)).flops;
}

std::vector<std::size_t> Stragglers::peers_of(std::size_t rank) const {
  const bool is_alone = std::ranges::count(place_, place_[rank]) == 1;
  std::vector<std::size_t> peers;
  for (std::size_t other = 0; other < place_.size(); ++other)
    if (other != rank && (is_alone || place_[other] == place_[rank])) peers.push_back(other);
  return peers;
}

std::vector<std::string> Stragglers::step(const std::vector<RankShare>& shares, const std::vector<std::string>& hosts) {
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    busy_[rank].push_back(busy_in(shares[rank].result));
    if (busy_[rank].size() > window_steps) busy_[rank].pop_front();
  }
  if (busy_[0].size() < window_steps) return {};
  const auto usual = [&](std::size_t rank) { return median_of({busy_[rank].begin(), busy_[rank].end()}); };
  std::vector<std::string> lines;
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    std::vector<double> theirs;  // what this rank's work takes at the speeds of its peers
    for (const std::size_t peer : peers_of(rank)) theirs.push_back(usual(peer) / work_[peer] * work_[rank]);
    if (theirs.empty()) continue;
    const double mine = usual(rank), expected = median_of(theirs);
    const bool is_slow = mine > slow_ratio * expected;
    if (is_slow && !named_[rank])
      lines.push_back(
          fmt::format("rank {} on {} is slow: it computes {} of each step, {:.1f} times as long as its peers, "
                      "which wait for it",
                      rank, hosts[rank], human_seconds(mine), mine / expected));
    named_[rank] = is_slow;
  }
  return lines;
}

}  // namespace chorale::train
