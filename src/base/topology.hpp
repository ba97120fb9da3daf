// The hosts of a run's ranks. Code that depends on the topology takes a Topology as an argument, so tests can pass any
// topology.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "src/base/mpi.hpp"

namespace chorale {

// Two ranks share a host if they can map each other's memory. Containers with separate PID namespaces count as different
// hosts, even on one machine.
struct Topology {
  std::vector<int> host_of;        // host number of each rank; hosts are numbered in the order of their first rank
  std::vector<std::string> names;  // the name of each host

  static Topology of_one_host(int ranks);
  static Topology of_counts(const std::vector<int>& ranks_of_each);  // hosts n0, n1, …; ranks are numbered host by host
  // Reads "2,3,1": three hosts with 2, 3 and 1 ranks. Throws a usage error unless `ranks` is the sum of these numbers or 0.
  static Topology parse(const std::string& counts, int ranks);
  int hosts() const { return static_cast<int>(names.size()); }
  std::vector<int> ranks_on(int host) const;
  bool together(std::span<const int> ranks) const;  // whether these ranks share a host
  Topology part(std::span<const int> ranks) const;  // returns the topology of only these ranks, renumbered from 0
  std::string text() const;                         // "n0: 0-1, n1: 2-3"
};

Topology topology_of(const mpi::Runtime& runtime);  // collective

}  // namespace chorale
