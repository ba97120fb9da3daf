#include "collectives/prediction/call_graph.hpp"

#include <algorithm>

#include "src/base/index.hpp"

namespace chorale::prediction {

CallGraph::CallGraph(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Site& site, const Prices& prices)
    : WorkGraph(site, site.crowded() ? prices.turn : 0, prices.burst * prices.link),
      ranks_(ranks),
      element_(static_cast<double>(element_bytes)),
      prices_(prices) {}

double CallGraph::seconds() {
  const std::vector<int> order = this->order();
  std::vector<std::size_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[index(order[i])] = i;
  std::ranges::stable_sort(accesses_, {}, [&](const Accessed& a) { return place[index(a.work)]; });
  Caches caches(ranks_, site_.core_of());
  for (const Accessed& a : accesses_) caches.note(a.work, works_[index(a.work)].rank, a.owner, a.elements, a.access);
  const auto counts = caches.counts(order.size());
  for (std::size_t w = 0; w < works_.size(); ++w) {
    if (works_[w].to >= 0) continue;
    const double footprint = caches.touched(works_[w].rank) * element_;
    works_[w].seconds += element_ * (counts[w].held * at(prices_.touch, footprint) +
                                     counts[w].fetched * at(prices_.cross, footprint) + counts[w].added * prices_.cross_sum);
  }
  return WorkGraph::seconds();
}

}  // namespace chorale::prediction
