// The guard of a host: a small process beside the ranks that sees what no rank can see while it computes, is stopped or is
// dead. It only looks ten times a second at their flight recorders (flight_page.hpp).
//
//   launcher ──┬── rank 0 ── forks ──▶ guard ◀── socket, pidfd, page ── every rank of the host
//              ├── rank 1                │
//              └── rank 2                ├─ a rank ended without a message  says who, how, where, in which call
//                                        ├─ a rank waits, nothing moves     says who is late, and who waits for whom
//                                        ├─ likewise, but in no call        warns who is late; ends nothing
//                                        └─ a rank has lost its parent      ends the ranks, removes what MPI left behind
//
// In each case it tells the waits of the other ranks, which end with exit code 4, or with the code of a rank that failed and
// said why. Then the launcher ends the ranks that do not wait, or else the guard does.
//
// Progress is judged, never speed: a run hangs if a rank waits for others and no rank of any host gets anything done (calls,
// layers, steps of schedules) for as long as the wait's limit. A run does not hang if all its ranks are stopped, or if a
// debugger is attached to one: somebody has paused it.
//
// The first rank on a host starts the guard before MPI starts. The others find it by a socket whose abstract name holds the
// job's number. A guard ends with the last rank of its host. Programs of one rank have none.
#pragma once
#include <memory>

#include "src/base/guard/flight.hpp"
#include "src/base/launch.hpp"

namespace chorale {

// Null if the run has one rank, or if the guard cannot be reached: a run goes on without it.
std::unique_ptr<Flight> join_guard(const Launch& launch, const Environment& environment);

}  // namespace chorale
