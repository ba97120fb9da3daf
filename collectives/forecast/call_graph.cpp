#include "collectives/forecast/call_graph.hpp"

#include <algorithm>

namespace chorale::forecast {

CallGraph::CallGraph(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Site& site, const Prices& prices)
    : ranks_(ranks),
      element_(static_cast<double>(element_bytes)),
      prices_(prices),
      core_of_(site.core_of()),
      graph_(site, site.crowded() ? prices.turn : 0, prices.burst * prices.link) {}

int CallGraph::add(int rank, double seconds) {
  own_.push_back({graph_.add(rank, seconds), rank, seconds});
  return own_.back().work;
}

double CallGraph::seconds() {
  const std::vector<int> order = graph_.order();
  std::vector<std::size_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[static_cast<std::size_t>(order[i])] = i;
  std::stable_sort(accesses_.begin(), accesses_.end(), [&](const Accessed& a, const Accessed& b) {
    return place[static_cast<std::size_t>(a.work)] < place[static_cast<std::size_t>(b.work)];
  });
  std::vector<int> rank_of(order.size(), -1);
  for (const Own& own : own_) rank_of[static_cast<std::size_t>(own.work)] = own.rank;
  Caches caches(ranks_, core_of_);
  for (const Accessed& a : accesses_)
    caches.note(a.work, rank_of[static_cast<std::size_t>(a.work)], a.owner, a.elements, a.access);
  const auto counts = caches.counts(order.size());
  for (const Own& own : own_) {
    const auto& count = counts[static_cast<std::size_t>(own.work)];
    const double footprint = caches.touched(own.rank) * element_;
    graph_.takes(own.work,
                 own.seconds + element_ * (count.held * at(prices_.touch, footprint) +
                                           count.fetched * at(prices_.cross, footprint) + count.added * prices_.cross_sum));
  }
  return graph_.seconds();
}

}  // namespace chorale::forecast
