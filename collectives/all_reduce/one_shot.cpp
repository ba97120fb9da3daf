// One-shot all-reduce: each of the p ranks sends its vector to all other ranks, and each rank sums all vectors in rank
// order. So the result is bit-identical to a sum that one rank computes from all vectors. The algorithm takes one round;
// each rank sends p−1 complete vectors. One-shot works well for tiny vectors.
#include "collectives/schedule/phases.hpp"

namespace chorale {

void one_shot_all_reduce(Schedule& s) {
  const Problem& p = s.problem();
  const Range own = input(0, p.blocks.total()), whole = output(0, p.blocks.total());
  std::vector<int> others;
  for (int k = 1; k < p.size; ++k) others.push_back(modulo(p.rank + k, p.size));
  if (others.empty()) {
    s.copy(own, whole);
    return;
  }
  s.round();
  s.send(others, own);
  if (!p.in_place) {
    s.recv_reduce(others, own, whole);
    return;
  }
  // In an in-place call, the sum needs a separate buffer. If the sum overwrote the vector being sent, every rank would have
  // to finish its sends before it could receive, and no send would complete.
  const Range sum = s.scratch(whole.count);
  s.recv_reduce(others, own, sum);
  s.copy(sum, whole);
}

namespace all_reduce {

Schedule one_shot(const Problem& p) {
  Schedule s(p);
  one_shot_all_reduce(s);
  return s;
}

}  // namespace all_reduce
}  // namespace chorale
