// What a caller asks of a collective: its buffers, its operator and the sizes of its blocks. A Problem (problem.hpp) is what
// remains of a call for an algorithm: numbers of elements, without buffers.
#pragma once
#include <cstdint>
#include <span>

#include "collectives/schedule/problem.hpp"
#include "src/math/reduction.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

using Counts = std::span<const std::int64_t>;

// The arguments of one collective call. Each named function of Communicator (call/communicator.hpp) fills in a Call; `run`
// and `start` take any Call.
struct Call {
  Collective what;
  Slice input = {}, output = {};
  Redop op = Redop::sum;
  int root = 0;
  Counts counts = {};  // sizes of uneven blocks, one per rank; empty: cut evenly. Read before run or start returns
  Counts taken = {};   // all_to_all: sizes of the received blocks; `counts` are those of the sent blocks
  // For an all_to_all with counts, if every rank knows the counts of all ranks: rank r sends everybodys[r · size + s]
  // elements to rank s. Without them, shm and nccl exchange counts before each call. With them, the call is never in place.
  Counts everybodys = {};
};

}  // namespace chorale
