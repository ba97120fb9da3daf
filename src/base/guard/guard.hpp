// The guard of a host: a small process beside the ranks. It sees what a rank cannot report while it computes, is stopped or
// is dead. It only reads their flight recorders (flight_page.hpp), ten times a second.
//
//   launcher ──┬── rank 0 ── forks ──▶ guard ◀── socket, pidfd, page ── every rank of the host
//              ├── rank 1                │
//              └── rank 2                ├─ a rank ended without a message  says who, how, where, in which call
//                                        ├─ a rank waits, nothing moves     says who is late, and who waits for whom
//                                        ├─ likewise, but in no call        warns who is late; ends nothing
//                                        └─ a rank has lost its parent      ends the ranks, removes what MPI left behind
//
// Except after a mere warning, the guard then ends the waits of the other ranks. They exit with code 4, or with the code of
// a rank that failed and said why. Then the launcher ends the ranks that do not wait; if it does not, the guard does.
//
// The guard judges progress, never speed: a run hangs if a rank waits for others and no rank of any host gets anything done
// (calls, layers, steps of schedules) for as long as the wait's limit. If all ranks are stopped, or if a debugger is
// attached to one, somebody has paused the run, and it does not count as hung.
//
// The first rank on a host starts the guard before MPI starts. The others find it by a socket whose abstract name contains
// the job number. A guard ends with the last rank of its host. A run of one rank has no guard.
#pragma once
#include <memory>

#include "src/base/guard/flight.hpp"
#include "src/base/launch.hpp"

namespace chorale {

// Returns null if the run has one rank, or if the guard cannot be reached. A run can go on without a guard.
std::unique_ptr<Flight> join_guard(const Launch& launch, const Environment& environment);

}  // namespace chorale
