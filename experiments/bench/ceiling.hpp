// Class Ceiling executes only the loads and stores that every algorithm for a collective on mapped memory must make. All
// ranks run at the same time, on the buffers of the benchmark, without flags or waits. The caller measures the time of these
// loads and stores, which is the memory ceiling. In ordinary memory, the kernel makes the loads and stores in other ranks'
// memory; if it is not allowed to, there is no ceiling.
//
//   all_reduce                            each rank sums its block (1/p) of all inputs and writes the sum to all outputs
//   reduce_scatter, reduce                the same, but the sum goes only to the rank's own output, or to the root's
//   all_gather, broadcast, scatter        each rank copies the missing data into its output
//   gather                                each rank copies its block into the root's output
//   all_to_all                            each rank copies its block of every input; in place there is no ceiling, because
//                                         ranks cannot exchange blocks without waiting
#pragma once
#include <vector>

#include "collectives/backends/mapped/reach.hpp"
#include "collectives/call/communicator.hpp"
#include "experiments/bench/buffers.hpp"
#include "experiments/bench/cases.hpp"

namespace chorale::bench {

class Ceiling {
 public:
  // Collective over all ranks of the backend. Call Buffers::lend first. `ranks`: the group's ranks, as numbered on the
  // transport.
  Ceiling(const Communicator& group, const Buffers& buffers, std::vector<int> ranks);

  bool exists(const BenchCase& row) const;
  void run(const BenchCase& row, std::int64_t call) const;  // this rank's loads and stores of the i-th call

 private:
  struct Spot {  // bytes in the memory of a rank of the group
    int rank;
    std::int64_t offset;  // from the rank's first input
    Spot at(std::int64_t bytes) const { return {rank, offset + bytes}; }
  };
  Spot input(int rank, std::int64_t call) const;
  Spot output(const BenchCase& row, int rank, std::int64_t call) const;
  std::byte* mapped(const Spot& spot) const;  // null if this process cannot access it
  mapped::Location location(const Spot& spot) const;
  bool all_mapped() const;
  void copy(const Spot& into, const Spot& from, std::int64_t bytes) const;
  void sum(const BenchCase& row, std::int64_t call) const;

  const Buffers& buffers_;
  std::vector<int> ranks_;
  int rank_;
  const mapped::Reach* reach_ = nullptr;
  std::vector<mapped::Location> inputs_;  // each rank's first input; empty if it cannot be reached
  mutable std::vector<std::byte> room_;   // one segment of each addend of a sum, and of the sum
};

}  // namespace chorale::bench
