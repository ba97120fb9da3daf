// Chooses the backend that connects the groups of each axis, and finds the groups that cross hosts. Some backends connect
// only the ranks of one host. An axis can use such a backend if all ranks of each of its groups are on one host.
//
//   dp2.tp2 on n0: 0-1, n1: 2-3      tp: 0-1, 2-3 stay on a host      dp: 0,2 and 1,3 cross hosts
#pragma once
#include <map>
#include <string>

#include "parallel/layout/grid.hpp"
#include "src/base/topology.hpp"

namespace chorale {

// The chosen backend or algorithm of each axis ("dp", "tp", "pp", "world"). The key "" holds the choice for all other axes.
using ByAxis = std::map<std::string, std::string>;
std::string to_string(const ByAxis& choices);  // "shm", "mpi,tp=shm"
const std::string& choice_for(const ByAxis& choices, const std::string& axis);

bool stays_on_hosts(const Layout& layout, const std::string& axis, const Topology& topology);
// Replaces "auto". If each group of an axis lies within one host, the axis gets the backend `nearest`; otherwise, the axis
// gets the backend `widest`.
ByAxis chosen_backends(ByAxis backends, const Layout& layout, const Topology& topology, const std::string& nearest,
                       const std::string& widest);
// Whether every axis that crosses hosts has a backend that connects hosts. An axis with the backend "auto" always counts as
// connected.
bool in_reach(const Layout& layout, const ByAxis& backends, const Topology& topology);
// Throws a usage error if an axis crosses hosts but its backend connects only the ranks of one host. The error names a
// placement, an order of the axes, a layout or a backend that would work.
void require_reach(const Layout& layout, const ByAxis& backends, const Topology& topology);

}  // namespace chorale
