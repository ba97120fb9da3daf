// `bench --backend simulated:NAME` computes the rows of a benchmark in virtual time, on one process. Nothing is sent, so no
// result is checked. Every repetition would take the same time.
//
//   machine of accelerators     message by message, on shared links (parallel/prediction/system_call.hpp), up to 256 ranks.
//                               For a ring, the row also has the closed form with which a plan times the calls of a step
//   calibrated machine file     by its prices (collectives/prediction/prediction.hpp), up to 63 ranks
//
// `auto` chooses the fastest algorithm.
#pragma once
#include "experiments/bench/sweep.hpp"

namespace chorale::bench {

// Throws a usage error if there are too many ranks, or if there is no network between hosts.
Outcome simulate(const Sweep& sweep, const std::string& backend, const Session& session);

}  // namespace chorale::bench
