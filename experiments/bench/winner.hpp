// Chooses the algorithm that `tune` writes for one case, such as all_reduce of 4 KiB on 2 ranks. The fastest algorithm is
// chosen, unless its lead over the usual algorithm can be noise. Without a tuning table, `auto` uses the usual algorithm.
// This rule keeps a busy machine from changing a choice by chance.
//
//   direct (usual)   ├────┤                  ring (usual)            ├────┤
//   one_shot       ├───┤       direct        direct       ├───┤               direct
//                  time of a call: the intervals overlap            they do not
#pragma once
#include <vector>

#include "collectives/choice/selection.hpp"
#include "collectives/choice/tuning.hpp"
#include "experiments/bench/measure.hpp"

namespace chorale::bench {

// `series`: at least one series; all series are for the same case. If no series ran the usual algorithm, the fastest
// algorithm is chosen.
Tuned winner_of(const std::vector<const Series*>& series, const Choice& usual);

}  // namespace chorale::bench
