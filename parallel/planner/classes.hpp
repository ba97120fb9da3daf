// Ranks that behave alike form a class, and only one rank of each class is simulated. Two ranks are in the same class if
// three conditions hold: they have the same script, the ranks on their hosts have the same classes, and the members of their
// groups have the same classes. Classes are found by refinement. At first, all ranks with the same script form a class. A
// class is then split as long as its ranks have hosts or groups of different classes.
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
  int host = 0;            // kind of the host of `rank`, as a number
  struct Group {
    std::size_t instance = 0;  // kind of this group, as a number that all classes in the group share
    std::vector<int> members;  // the class of each rank of the group
    std::vector<int> classes;  // the distinct classes among `members`
    int on_host = 1;           // number of groups with this name and instance that have ranks on the host
    int senders = 1;           // number of ranks of this class on the host
    int beside = 1;            // number of groups of this name that have ranks on the host
  };
  std::map<std::string, Group> groups;  // by the name of the axis
};

struct RankClasses {
  std::vector<RankClass> classes;
  std::vector<int> class_of;  // the class of each rank
  int hosts = 0;              // number of kinds of hosts
};

// `scripts`: a number for each rank, equal for ranks with the same script.
RankClasses fold(const std::vector<RankGroup>& groups, const std::vector<int>& scripts, int ranks_per_host);

}  // namespace chorale
