#include "experiments/train/stragglers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "experiments/common/statistics.hpp"
#include "src/base/text.hpp"

namespace chorale::train {
namespace {

constexpr std::size_t window_steps = 10;
constexpr double slow_ratio = 1.7, recovered_ratio = 1.3;

double busy_in(const StepResult& result) { return result.data + result.forward + result.backward + result.optimizer; }

}  // namespace

Stragglers::Stragglers(const PlanRequest& request) {
  const Layout& layout = request.layout;
  const auto ranks = static_cast<std::size_t>(layout.ranks());
  work_.assign(ranks, 1);
  busy_.resize(ranks);
  named_.resize(ranks);
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::size_t>> by_place;  // key: stage, part of the sequence
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto number = static_cast<std::int64_t>(rank);
    by_place[{stage_of(layout, number), context_rank_of(layout, number)}].push_back(rank);
  }
  const bool any_alone = std::ranges::any_of(by_place, [](const auto& entry) { return entry.second.size() == 1; });
  if (any_alone && ranks > 1) {
    for (std::size_t rank = 0; rank < ranks; ++rank) work_[rank] = plan_rank(request, static_cast<int>(rank)).flops;
    std::vector<std::size_t>& all = peers_.emplace_back(ranks);
    std::iota(all.begin(), all.end(), 0);
  } else if (ranks > 1) {
    for (auto& [place, group] : by_place) peers_.push_back(std::move(group));
  }
}

std::vector<std::pair<std::size_t, std::string>> Stragglers::step(const std::vector<RankShare>& shares) {
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    busy_[rank].push_back(busy_in(shares[rank].result));
    if (busy_[rank].size() > window_steps) busy_[rank].pop_front();
  }
  std::vector<std::pair<std::size_t, std::string>> slow;
  if (busy_[0].size() < window_steps) return slow;
  for (const std::vector<std::size_t>& group : peers_) {
    std::vector<std::pair<double, std::size_t>> paces;  // seconds per unit of work, in ascending order
    for (const std::size_t rank : group)
      paces.emplace_back(median_of({busy_[rank].begin(), busy_[rank].end()}) / work_[rank], rank);
    std::ranges::sort(paces);
    for (std::size_t i = 0; i < paces.size(); ++i) {
      const auto [pace, rank] = paces[i];
      const std::size_t middle = (paces.size() - 1) / 2;  // position of the median if rank i is left out
      const double ratio = pace / paces[middle < i ? middle : middle + 1].first;
      if (ratio > slow_ratio && !named_[rank])
        slow.emplace_back(rank,
                          fmt::format("it computes {} of each step, {:.1f} times as long as its peers, which wait for it",
                                      human_seconds(pace * work_[rank]), ratio));
      if (ratio > slow_ratio || ratio < recovered_ratio) named_[rank] = ratio > slow_ratio;
    }
  }
  return slow;
}

}  // namespace chorale::train
