// The guard of a host is a small process that runs beside the ranks. The guard detects whether a rank computes, is stopped
// or is dead. A rank that is stopped or dead cannot report this itself. The guard reads the ranks' flight recorders
// (flight_page.hpp) ten times a second.
//
//   launcher ──┬── rank 0 ── forks ──▶ guard ◀── socket, pidfd, page ── every rank of the host
//              ├── rank 1                │
//              └── rank 2                ├─ a rank ended without a message  reports the rank, cause, place and call
//                                        ├─ a rank waits, nothing moves     reports late ranks, and who waits for whom
//                                        ├─ likewise, but in no call        warns about late ranks; ends nothing
//                                        └─ a rank has lost its parent      ends the ranks, removes files that MPI left
//
// In all cases except the warning, the guard then ends the waits of all remaining ranks. The ranks whose waits were ended
// exit with code 4. If a rank failed and reported the reason, all ranks exit with the code of that rank. Then the launcher
// ends the ranks that are not waiting. If the launcher does not end these ranks, the guard ends them.
//
// The guard judges progress, never speed. A run hangs if a rank waits for other ranks and no rank on any host makes progress
// before the time limit of the wait. Progress means the completion of calls, layers or schedule steps. If all ranks are
// stopped, or if a debugger is attached to a rank, the run counts as paused and not as hung.
//
// The first rank on a host starts the guard before MPI starts. All other ranks of the host find the guard through a socket
// whose abstract name contains the job number. A guard ends after the last rank of its host has ended. A run with a single
// rank has no guard, unless a supervisor (`chorale launch`) wants to know how it ends.
#pragma once
#include <memory>

#include "src/base/guard/flight.hpp"
#include "src/base/launch.hpp"

namespace chorale {

// The environment variable with the invitation of the supervisor that started this run (OtherGuards::invite). It contains a
// secret, so it is not an option, which every user could see in the list of processes.
inline constexpr const char* supervisor_variable = "CHORALE_SUPERVISOR";

// Connects this rank to the guard of its host. Returns null if the run has a single rank and no supervisor, or if the guard
// cannot be reached. A run also works without a guard.
std::unique_ptr<Flight> join_guard(const Launch& launch, const Environment& environment);

}  // namespace chorale
