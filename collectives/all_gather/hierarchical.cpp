// Hierarchical all-gather, for links that are fast within a host and slow between hosts. The algorithm is the reverse of the
// hierarchical reduce-scatter. First the owners of a lane on all hosts (schedule/lanes.hpp) exchange their blocks. Then the
// ranks of each host gather all lanes. So each host receives the blocks of the other hosts once, which is the minimum for
// any algorithm. If the blocks of all n hosts are equally long, each host receives (n−1)/n of the vector.
#include "collectives/schedule/hierarchy.hpp"
#include "collectives/schedule/phases.hpp"

namespace chorale::all_gather {

Schedule hierarchical(const Problem& p) {
  Schedule s(p);
  const Lanes lanes(p);
  s.copy(input(0, p.blocks.count(p.rank)), in_output(p)(p.rank));
  Hierarchy work(s, lanes, pieces_of_blocks(lanes, p.blocks), output(0, p.blocks.total()));
  work.gather_between();
  work.gather_within();
  return s;
}

}  // namespace chorale::all_gather
