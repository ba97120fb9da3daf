// The memory ceiling of a collective on mapped memory, measured: the loads and stores that the best algorithm cannot avoid,
// on the same buffers, by all ranks at once, with no flags and no waits in between.
//
//   all_reduce, reduce_scatter, reduce    each rank reads its 1/p of all inputs and writes the sum to all outputs, to its
//                                         own, or to the root's
//   all_gather, broadcast, scatter        each copies into its output what is not there yet
//   gather                                each copies its block into the root's output
//   all_to_all                            each copies its block of every input; in place there is no ceiling, since ranks
//                                         cannot exchange blocks without waiting
#pragma once
#include <vector>

#include "collectives/communicator.hpp"
#include "experiments/bench/buffers.hpp"
#include "experiments/bench/cases.hpp"

namespace chorale::bench {

class Ceiling {
 public:
  // Set-up, on all ranks at once, once the buffers are lent.
  Ceiling(const Communicator& world, const Buffers& buffers);

  bool exists(const Case& row) const;
  void run(const Case& row, std::int64_t call) const;  // this rank's loads and stores of the i-th call

 private:
  std::byte* input(int rank, std::int64_t call) const;
  std::byte* output(const Case& row, int rank, std::int64_t call) const;
  void sum(const Case& row, std::int64_t call) const;

  const Buffers& buffers_;
  int rank_;
  std::vector<std::byte*> inputs_;  // each rank's first, as seen from here; none where they are not mapped
};

}  // namespace chorale::bench
