// Finds out how a process that is not our child has ended. Only its parent may wait for it, so this looks in two places:
//
//   /proc/PID/stat shows the exit code until the parent has collected it     a race, usually won: the guard wakes first
//   the kernel keeps the code for whoever holds a pidfd                      since Linux 6.15
#pragma once
#include <string>

#include <chorale/clock.hpp>

namespace chorale {

// "was killed by SIGKILL", "exited with code 3". Waits for at most 0.2 s.
std::string last_words(int pid, int process, Clock& clock);

}  // namespace chorale
