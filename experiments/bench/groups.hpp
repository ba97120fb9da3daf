// The groups of `bench --groups N`. All ranks are divided into N groups of equal size, which call the collective at the same
// time, as the groups of a training layout do.
//
//   6 ranks, --groups 2              0 1 2 │ 3 4 5        consecutive ranks, like tensor-parallel groups
//   6 ranks, --groups 2 --strided    0 2 4 │ 1 3 5        every second rank, like data-parallel groups
#pragma once
#include <vector>

#include "collectives/schedule/side_by_side.hpp"

namespace chorale::bench {

struct Groups {
  int number = 1;
  bool strided = false;

  int of(int rank, int ranks) const { return strided ? rank % number : rank / (ranks / number); }  // the rank's group
  SideBySide among(int ranks, const std::vector<int>& hosts) const;

  // Throws a usage error if the ranks cannot be divided. The groups must also be spread over the hosts in the same way:
  // otherwise they could run different algorithms, and a row would not describe one call.
  void require_equal(int ranks, const std::vector<int>& hosts) const;
};

}  // namespace chorale::bench
