// Cuts a schedule into chunks that follow one another, so that a rank forwards the first while the second arrives. A chain
// of p ranks moves n elements in k chunks in p − 2 + k rounds of n/k, instead of p − 1 rounds of n.
//
//   chain, p = 3, k = 2      rank 0        rank 1                    rank 2
//                            send  a ────▶ recv a
//                            send  b ────▶ recv b   send a ────────▶ recv a
//                                                   send b ────────▶ recv b
#pragma once
#include "collectives/schedule.hpp"

namespace chorale {

// Each step becomes up to `chunks` steps on consecutive parts of its ranges. The cuts depend only on the step's length, so
// both sides of a message cut it alike.
Schedule cut_into_chunks(const Schedule& whole, int chunks);

}  // namespace chorale
