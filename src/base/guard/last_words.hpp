// How a process that is not our child has ended. Only its parent may wait for it; so this looks in three places:
//
//   the kernel keeps the exit code for whoever holds a pidfd          since Linux 6.15
//   /proc/PID/stat shows it until the parent has collected it         a race, usually won: the guard sees the end first
//   nothing is known                                                  "ended without a word"
#pragma once
#include <string>

#include "src/base/clock.hpp"

namespace chorale {

// "was killed by SIGKILL", "exited with code 3". Waits for at most 0.2 s.
std::string last_words(int pid, int process, Clock& clock);

}  // namespace chorale
