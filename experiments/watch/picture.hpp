// Draws the live status of a run as text:
//
//   2026-11-21T03-41-37-train-5fd2  4 ranks  running
//   step 312/1000  31 %  12.4 s, 27.4 s to go
//
//   4.2518 ⢇⡀                                    the loss of every step so far
//          ⠀⠙⠢⢄⡀
//   2.0173 ⠀⠀⠀⠀⠈⠉⠒⠤⣀
//
//   loss   2.0173, held out 2.1034 after step 300
//   speed  51234 tokens/s, MFU 41 %
//   time   ████████████████████▒▒▒▒▒▒░░░  computing 70 %, communication 20 %, bubble 10 %
//   memory 1.2 GiB on the fullest rank
//
// Speed, shares and the remaining time are means over the newest steps.
#pragma once
#include <string>
#include <vector>

#include "experiments/watch/metrics.hpp"

namespace chorale::watch {

struct View {
  double silent_seconds = 0;  // seconds since the file last grew
  int columns = 80;
};

std::string picture(const Metrics& metrics, const View& view);
std::string line(const Metrics& metrics, const View& view);  // one line, for output that is not a terminal

// Draws values from left to right as dots, two per column and four per row. Values that are not finite leave a gap.
std::vector<std::string> braille(const std::vector<double>& values, int columns, int rows);

}  // namespace chorale::watch
