// Ranks that behave alike are simulated once. Two ranks are of one class if they have the same script, if the ranks on their
// hosts are of the same classes, and if the members of their groups are. This is found by refinement: ranks begin with the
// class of their script, and classes are divided until the neighborhoods of all members agree.
//
//   dp8.tp2.pp2 on hosts of 4       stage 0: 16 ranks, 1 class      stage 1: 16 ranks, 1 class
#pragma once
#include <map>
#include <string>
#include <vector>

#include "parallel/mesh/mesh.hpp"

namespace chorale {

struct RankClass {
  int rank = 0;            // its first rank stands for all of them
  std::int64_t ranks = 0;  // how many there are
  int host = 0;            // of `rank`: an index of kinds of hosts
  struct Group {
    std::size_t instance = 0;  // the same for all classes of which the group has members
    std::vector<int> members;  // classes by the rank within the group
    std::vector<int> classes;  // each once
    int on_host = 1;           // groups of this name and instance that have ranks on the host
    int senders = 1;           // ranks of this class on the host
    int beside = 1;            // groups of this name that have ranks on the host
  };
  std::map<std::string, Group> groups;  // by the name of the axis
};

struct RankClasses {
  std::vector<RankClass> classes;
  std::vector<int> class_of;  // by rank
  int hosts = 0;              // kinds of hosts
};

// `scripts`: by rank, a number that is equal for ranks with the same script.
RankClasses fold(const std::vector<RankGroup>& groups, const std::vector<int>& scripts, int ranks_per_host);

}  // namespace chorale
