// Direct barrier: everybody tells everybody. One round, p(p−1) messages: on mapped memory the p−1 looks of a rank are cheap.
#include "collectives/phases.hpp"

namespace chorale::barrier {

Schedule direct(const Problem& p) {
  Schedule s(p);
  one_shot_all_reduce(s);
  return s;
}

}  // namespace chorale::barrier
