// Determines how a process ended that is not a child of this process. Only the parent of a process can wait for the process,
// so last_words() uses two other sources:
//
//   /proc/PID/stat shows the exit code until the parent has collected it     a race, but the guard usually wakes first
//   the kernel keeps the code for holders of a pidfd                         since Linux 6.15
#pragma once
#include <string>

#include <chorale/clock.hpp>

namespace chorale {

// Returns "was killed by SIGKILL" or "exited with code 3", for example. Waits up to 0.2 s.
std::string last_words(int pid, int process, Clock& clock);

}  // namespace chorale
