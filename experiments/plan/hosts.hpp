// Plans for several hosts, as in `chorale plan --hosts 2,2`. The plan chooses the axis order, backends and algorithms that a
// run on these hosts would choose. A table shows how many bytes cross hosts.
//
//   stage  axis  bytes    across hosts        sent in a step by all ranks of a stage
//   0      dp    81 MiB   40.5 MiB
#pragma once
#include <string>

#include "experiments/plan/document.hpp"
#include "experiments/plan/wording.hpp"
#include "parallel/plan/plan.hpp"
#include "src/base/topology.hpp"

namespace chorale::plan {

class Hosts {
 public:
  explicit Hosts(Topology topology);  // assumes hosts like this one

  // Puts the request's ranks on the hosts. Chooses the axis order if none was given, and replaces "auto" backends. If the
  // order is not the usual one, returns a line with the reason; otherwise "".
  std::string place(PlanRequest& request) const;
  // Throws a usage error if the ranks of a placed request cannot run on the hosts.
  void require_suited(const PlanRequest& request) const;
  bool suit(const PlanRequest& request) const;  // whether require_suited() would accept the request
  bool one_host() const { return topology_.hosts() == 1; }
  std::string assumed() const;  // the backends that replace "auto", as one line
  // Adds the table and its heading. Plans every rank of the request.
  void add_traffic(Document& document, const PlanRequest& request, const Wording& as) const;

 private:
  Topology topology_;
  std::string nearest_, widest_;  // the backends that replace "auto" within a host, and between hosts
};

}  // namespace chorale::plan
