// Ranks with the same behavior form a class, and only one rank of each class is simulated. Ranks of a class have the same
// script. The ranks on their hosts have the same classes, and so do the members of their groups and the ranks under their
// leaf switches. Classes are found by refinement. At first, all ranks with the same script form a class. A class is then
// split until the hosts, groups and leaf switches of its ranks have the same classes.
//
//   dp8.tp2.pp2 on hosts of 4       stage 0: 16 ranks, 1 class      stage 1: 16 ranks, 1 class
#pragma once
#include <map>
#include <string>
#include <vector>

#include "parallel/mesh/mesh.hpp"

namespace chorale {

struct RankClass {
  int rank = 0;            // the first rank of the class, which represents the class
  std::int64_t ranks = 0;  // number of ranks in the class
  int host = 0;            // the number of the kind of host on which `rank` is
  int leaf = 0;            // the number of the kind of leaf switch above this host
  struct Group {
    std::size_t instance = 0;  // the number of the kind of this group; the same in all classes of the group's members
    std::vector<int> members;  // the class of each rank of the group
    std::vector<int> classes;  // the distinct classes among `members`
    int on_host = 1;           // number of groups with this name and instance that have ranks on the host
    int senders = 1;           // number of ranks of this class on the host
    int beside = 1;            // number of groups of this name that have ranks on the host
    int under_leaf = 0;        // number of groups with this name and instance that have ranks under the leaf switch
    int leaf_senders = 0;      // number of ranks of this class under the leaf switch
  };
  std::map<std::string, Group> groups;  // the key is the name of the axis
};

struct RankClasses {
  std::vector<RankClass> classes;
  std::vector<int> class_of;  // the class of each rank
  int hosts = 0;              // number of kinds of hosts
  int leaves = 0;             // number of kinds of leaf switches
};

// `scripts`: a number for each rank. Ranks with the same script have the same number. `hosts_per_switch`: 0 if there are no
// leaf switches.
RankClasses fold(const std::vector<RankGroup>& groups, const std::vector<int>& scripts, int ranks_per_host,
                 int hosts_per_switch = 0);

}  // namespace chorale
