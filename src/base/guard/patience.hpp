// The time for which a run has made no progress, as a fraction of the allowed time. The allowed time (limit) depends on the
// state of the run: a rank that waits for a disk gets more time, and a paused run has no limit. Each interval is therefore
// divided by the limit that applies at that time. When a paused run resumes, the fraction restarts at zero.
#pragma once
#include "src/base/guard/look.hpp"

namespace chorale {

class Patience {
 public:
  // `look` is the state of the run, `passed` seconds after the previous call.
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
  double seconds() const { return seconds_; }  // seconds without progress so far
  double spent() const { return spent_; }      // fraction of the allowed time that has passed; 1: the run hangs

 private:
  std::uint64_t done_ = 0;
  double seconds_ = 0, spent_ = 0;
};

}  // namespace chorale
