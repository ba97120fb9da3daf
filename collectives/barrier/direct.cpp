// Direct barrier: each of the p ranks signals all other ranks. The barrier takes one round and p(p−1) messages. On mapped
// memory, these messages are cheap, because each rank only reads the flags of p−1 ranks.
#include "collectives/schedule/phases.hpp"

namespace chorale::barrier {

Schedule direct(const Problem& p) {
  Schedule s(p);
  one_shot_all_reduce(s);
  return s;
}

}  // namespace chorale::barrier
