// A CallGraph is the graph of a call's work items (work.hpp), together with the elements that each work item accesses. The
// price of an access depends on whether the core has the elements in its caches (caches.hpp).
#pragma once
#include <vector>

#include "collectives/prediction/caches.hpp"
#include "collectives/prediction/prices.hpp"
#include "collectives/prediction/work.hpp"

namespace chorale::prediction {

class CallGraph : protected WorkGraph {
 public:
  using WorkGraph::add, WorkGraph::add_transfer, WorkGraph::after;
  CallGraph(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Site& site, const Prices& prices);

  // Records that the work item `work` accesses elements of rank `owner`. Its duration becomes longer by the price.
  void accesses(int work, int owner, const Range& elements, Access access) {
    accesses_.push_back({work, owner, elements, access});
  }
  double seconds();  // may be called only once

 private:
  struct Accessed {
    int work, owner;
    Range elements;
    Access access;
  };
  const std::vector<Schedule>& ranks_;
  double element_;
  const Prices& prices_;
  std::vector<Accessed> accesses_;
};

}  // namespace chorale::prediction
