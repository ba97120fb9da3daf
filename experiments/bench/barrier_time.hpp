// A benchmark times a barrier just before each series of calls. This barrier time shows how far apart the ranks' cores are.
// A hypervisor may move the cores of a virtual machine closer together for some seconds, perhaps onto two hardware threads
// of one core. Data are then exchanged up to three times as fast, and prices measured earlier do not apply.
//
//   barriers, µs    0.68 0.71 0.42 0.43 0.66 0.68 …    usual: 0.68, and 4 of 6 are usual
//
// If there are more ranks than cores, the barrier time shows where the operating system has scheduled the ranks. It then
// says nothing about the machine.
#pragma once
#include <algorithm>
#include <vector>

namespace chorale::bench {

// Whether a barrier time is within a factor of 1.25 of the usual one: the cores are then as far apart as usual.
inline bool is_usual(double barrier, double usual) { return barrier < 1.25 * usual && usual < 1.25 * barrier; }

// The usual barrier time: the median of all barrier times.
inline double usual_barrier(std::vector<double> barriers) {
  const auto middle = barriers.begin() + static_cast<std::ptrdiff_t>(barriers.size() / 2);
  std::ranges::nth_element(barriers, middle);
  return *middle;
}

}  // namespace chorale::bench
