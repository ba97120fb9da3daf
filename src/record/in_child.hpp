// Runs a function in a child process, because the function can crash. libhdf5 crashes on some damaged files and loops
// forever on others, so a child reads a record before this process does (reader.cpp).
//
//   this process   fork ──────────────────── waits ──── "", or the reason why the child died
//   child          └─ work(), then _exit ──────┘
#pragma once
#include <functional>
#include <string>

namespace chorale {

// Returns "" if the function returned or threw an Error. Otherwise returns the reason why the child ended: "Segmentation
// fault", "more than 20 s of computing". The child must use no MPI, start no threads and change no files.
std::string end_in_child(const std::function<void()>& work, double most_seconds);

}  // namespace chorale
