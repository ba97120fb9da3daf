// A benchmark times a barrier just before each series of calls. The barrier time shows how fast the ranks' cores currently
// exchange data. A hypervisor can move the virtual cores of a machine for some seconds, for example onto two hardware
// threads of one core. After such a move, data are exchanged up to three times as fast, and earlier measurements do not
// apply.
//
//   barriers, µs    0.68 0.71 0.42 0.43 0.66 0.68 …    usual: 0.68, and 4 of 6 are usual
//
// If there are more ranks than cores, the barrier time depends on how the operating system schedules the ranks, and says
// nothing about the machine.
#pragma once
#include <algorithm>
#include <vector>

namespace chorale::bench {

// Whether a barrier time is within a factor of 1.25 of the usual barrier time. If so, the cores exchange data about as fast
// as usual.
inline bool is_usual(double barrier, double usual) { return barrier < 1.25 * usual && usual < 1.25 * barrier; }

// The usual barrier time: the median of all barrier times.
inline double usual_barrier(std::vector<double> barriers) {
  const auto middle = barriers.begin() + static_cast<std::ptrdiff_t>(barriers.size() / 2);
  std::ranges::nth_element(barriers, middle);
  return *middle;
}

}  // namespace chorale::bench
