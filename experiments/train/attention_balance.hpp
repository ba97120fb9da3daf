// Compares the attention work of the ranks that split sequences (cp). Shows the number of query–key pairs that are not
// masked, which predicts the time, and the measured time.
//
//   imbalance = maximum over the ranks along cp / mean     1: even;  2 − 1/c: causal attention, c contiguous blocks
#pragma once
#include "experiments/common/run_record.hpp"
#include "parallel/step/training.hpp"

namespace chorale::train {

// Collective. Rank 0 prints the imbalances of pairs and times, and records both in /ranks. Does nothing if the layout has no
// cp, or if ranks compute on a device.
void report_attention_balance(RunRecord& run, const Training& training);

}  // namespace chorale::train
