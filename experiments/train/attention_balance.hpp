// Compares the attention work of the ranks that split sequences (cp). It shows the pairs of a query and a key that the query
// attends to, which predict the time, and the measured time.
//
//   imbalance = the most of any rank along cp / the mean         1: even;  2 − 1/c: causal attention, c contiguous parts
#pragma once
#include "experiments/common/run_record.hpp"
#include "parallel/step/training.hpp"

namespace chorale::train {

// Collective. Rank 0 prints both imbalances, and records pairs and times in /ranks. Does nothing without cp or on a device.
void report_attention_balance(RunRecord& run, const Training& training);

}  // namespace chorale::train
