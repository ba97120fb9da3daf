// How long nothing has moved, as a share of the time that is allowed. The limit changes: a disk has more time than a rank
// that waits, and a run that somebody has paused has no limit at all. So each moment counts by the limit of that moment, and
// a run that goes on after a pause begins anew.
#pragma once
#include "src/base/guard/look.hpp"

namespace chorale {

class Patience {
 public:
  // The run was `look` after another `passed` seconds.
  void see(const Look& look, double passed) {
    const double limit = look.limit();
    const bool moved = look.done != done_;
    done_ = look.done;
    if (moved || limit == never) {
      seconds_ = spent_ = 0;
      return;
    }
    seconds_ += passed;
    spent_ += limit > 0 ? passed / limit : 1;
  }
  double seconds() const { return seconds_; }  // for which nothing has moved
  double spent() const { return spent_; }      // 1: the run hangs

 private:
  std::uint64_t done_ = 0;
  double seconds_ = 0, spent_ = 0;
};

}  // namespace chorale
