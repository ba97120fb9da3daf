// Chooses how the axes of a layout are nested. On several hosts, this choice affects speed, because neighbors on the
// innermost axis have consecutive rank numbers and usually share a host.
//
//   dp2.tp2 on n0: 0-1, n1: 2-3      dp,tp: tp stays on hosts, dp crosses hosts     tp,dp: the reverse
//
// The cost of a group is computed for a ring, in which each rank sends to the next rank. Only bytes between different hosts
// count.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "parallel/mesh/mesh.hpp"
#include "parallel/plan/plan.hpp"

namespace chorale {

// The bytes that one rank of a group sends to the next rank in a step. The key is the group's name ("dp", "ends"). The
// values can also be costs in any other unit.
using SentByGroup = std::map<std::string, double>;
// The bytes that are sent in a step with ring algorithms. Each group's value is the mean over the stages that have a group
// of this name.
SentByGroup sent_in_a_step(const PlanRequest& request);
// The bytes that the groups of this layout send between hosts, summed over all groups with the same name.
SentByGroup sent_across_hosts(const Layout& layout, const SentByGroup& sent, const Topology& topology);

struct OrderChoice {
  AxisOrder order;  // empty for the default order
  std::string why;  // a line for the user; "" for the default order
};
// Returns why a layout with a given order of its axes is impossible, as a clause of a sentence; "" if the layout is
// possible.
using WhyNot = std::function<std::string(const Layout&)>;
// Returns why ranks on these hosts cannot run this layout; "" if they can. There are two possible reasons: a backend cannot
// connect the hosts of an axis, or a context-parallel scheme does not support the ranks' placement on hosts.
std::string why_not_on(const Topology& topology, const Layout& layout, const ByAxis& backends,
                       const TrainingOptions& options);
// Chooses the possible order that sends the fewest bytes between hosts. The choice depends only on the arguments, so all
// ranks choose the same order.
OrderChoice cheapest_order(const Layout& layout, const WhyNot& why_not, const SentByGroup& sent, const Topology& topology);

}  // namespace chorale
