// Splits the messages of a schedule into chunks, so that a rank forwards the first chunk while the second chunk arrives.
// Without chunks, a chain of p ranks forwards a vector of n elements in p − 1 rounds. In each round, a rank sends n
// elements. With k chunks, the chain takes p − 2 + k rounds, and a rank sends n/k elements in each round.
//
//   chain, p = 3, k = 2      rank 0        rank 1                    rank 2
//                            send  a ────▶ recv a
//                            send  b ────▶ recv b   send a ────────▶ recv a
//                                                   send b ────────▶ recv b
#pragma once
#include <chorale/schedule.hpp>

namespace chorale {

// Replaces each step by up to `chunks` steps on consecutive parts of its ranges. A range is split at positions that depend
// only on its length, so sender and receiver split a message at the same elements.
Schedule cut_into_chunks(Schedule whole, int chunks);

}  // namespace chorale
