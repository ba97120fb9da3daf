// One-shot all-reduce: each of the p ranks sends its vector to all other ranks, and each rank sums all vectors in rank
// order. So the result is bit-identical to a sum that one rank computes from all vectors. The algorithm takes one round;
// each rank sends p−1 complete vectors. One-shot works well for tiny vectors. It is also the direct barrier: on mapped
// memory, its p(p−1) messages are cheap, because each rank only reads the flags of p−1 ranks.
#include "collectives/schedule/phases.hpp"

namespace chorale::all_reduce {

Schedule one_shot(const Problem& p) {
  Schedule s(p);
  const Range own = input(0, p.blocks.total()), whole = output(0, p.blocks.total());
  const std::vector<int> others = others_from(p.rank, p.size);
  if (others.empty()) {
    s.copy(own, whole);
    return s;
  }
  s.round();
  s.send(others, own);
  if (!p.in_place) {
    s.recv_reduce(others, own, whole);
    return s;
  }
  // In an in-place call, the sum needs a separate buffer. If the sum overwrote the vector being sent, every rank would have
  // to finish its sends before it could receive, and no send would complete.
  const Range sum = s.scratch(whole.count);
  s.recv_reduce(others, own, sum);
  s.copy(sum, whole);
  return s;
}

}  // namespace chorale::all_reduce
