// The combined state of several ranks at one moment. A Look contains enough information to judge whether a run hangs.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

namespace chorale {

constexpr double never = std::numeric_limits<double>::infinity();

struct Look {
  std::uint64_t done = 0;                     // sum of the progress counters of all ranks
  std::uint64_t idled = 0;                    // number of polls in the ranks' waits
  double waiting = never, any = never;        // smallest time limit in seconds among the waiting ranks, and among all ranks
  int ranks = 0, here = 0;                    // number of ranks that have connected; number of ranks that are still running
  int waiters = 0, stopped = 0, blocked = 0;  // numbers of running ranks that wait for other ranks, that are stopped by a
                                              // signal, and that wait for a disk
  bool traced = false;                        // whether a debugger is attached to a rank

  void add(const Look& other) {
    done += other.done;
    idled += other.idled;
    waiting = std::min(waiting, other.waiting);
    any = std::min(any, other.any);
    ranks += other.ranks;
    here += other.here;
    waiters += other.waiters;
    stopped += other.stopped;
    blocked += other.blocked;
    traced |= other.traced;
  }

  // Returns the seconds without any progress after which the run counts as hung. If any rank is stopped, the limit is the
  // smallest limit of all ranks, not only of the waiting ranks. The reason is that a rank might wait for the stopped rank
  // inside MPI, where the guard cannot see the wait. If all ranks are stopped, the run counts as paused and has no limit. If
  // a rank waits for a disk, the limit is ten times as long.
  double limit() const {
    constexpr double for_a_disk = 10;
    if (traced || stopped == here) return never;
    return (stopped > 0 ? any : waiting) * (blocked > 0 ? for_a_disk : 1);
  }
};

}  // namespace chorale
