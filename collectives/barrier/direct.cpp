// Direct barrier: each rank signals all others. One round, p(p−1) messages. On mapped memory, a rank's p−1 reads are cheap.
#include "collectives/phases.hpp"

namespace chorale::barrier {

Schedule direct(const Problem& p) {
  Schedule s(p);
  one_shot_all_reduce(s);
  return s;
}

}  // namespace chorale::barrier
