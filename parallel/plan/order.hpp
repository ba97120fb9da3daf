// Which axis of a layout lies inside which. On several hosts this choice has a price: neighbors on the innermost axis have
// consecutive rank numbers, so they usually share a host.
//
//   dp2.tp2 on n0: 0-1, n1: 2-3      dp,tp: tp stays on hosts, dp crosses them      tp,dp: the reverse
//
// A group is priced as a ring: each of its ranks sends to the next one, and only a pair on two hosts counts.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "parallel/mesh/mesh.hpp"
#include "parallel/plan/plan.hpp"

namespace chorale {

// The bytes that one rank of a group sends to the next rank in a step. The key is the group's name ("dp", "ends"). Any other
// unit of cost may take the place of bytes.
using SentByGroup = std::map<std::string, double>;
// The bytes of a step with ring algorithms, as a mean over the stages that have such a group.
SentByGroup sent_in_a_step(const PlanRequest& request);
// Adds up what the groups of this layout send between hosts, by the group's name.
SentByGroup sent_across_hosts(const Layout& layout, const SentByGroup& sent, const Topology& topology);

struct OrderChoice {
  AxisOrder order;  // empty: the usual one
  std::string why;  // a line for the user; "" for the usual order
};
// Why a layout with some order of its axes is impossible, as a clause for a sentence; "" if it is possible.
using WhyNot = std::function<std::string(const Layout&)>;
// The reason why ranks on these hosts cannot run this layout: a backend that does not reach, or a scheme of context
// parallelism that does not fit the hosts.
std::string why_not_on(const Topology& topology, const Layout& layout, const ByAxis& backends,
                       const TrainingOptions& options);
// The possible order that sends the fewest bytes between hosts. Equal arguments give equal choices, so all ranks choose the
// same.
OrderChoice cheapest_order(const Layout& layout, const WhyNot& why_not, const SentByGroup& sent, const Topology& topology);

}  // namespace chorale
