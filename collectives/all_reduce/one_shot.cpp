// One-shot all-reduce: everybody sends everything to all, and sums in rank order, so that the result is the one a single rank would
// get by adding the vectors up. One round; p−1 whole vectors a rank: for tiny ones.
#include "collectives/phases.hpp"

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
  // In place the sum may not land on what is still being sent: if everybody waited for that, nobody would receive.
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
