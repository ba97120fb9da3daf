// The barrier time of a series of calls is the time of a barrier just before it. It shows how far apart the ranks' cores
// are. A hypervisor may move a virtual machine's cores closer together for some seconds, perhaps onto two threads of one
// core. Data are then exchanged up to three times as fast, and prices that were measured before do not hold.
//
//   barriers, µs    0.68 0.71 0.42 0.43 0.66 0.68 …    usual: 0.68, and 4 of 6 are usual
//
// If ranks outnumber cores, a barrier time shows where the operating system has put the ranks, and says nothing about the
// machine.
#pragma once
#include <algorithm>
#include <vector>

namespace chorale::bench {

// Whether cores are as far apart as usual.
inline bool is_usual(double barrier, double usual) { return barrier < 1.25 * usual && usual < 1.25 * barrier; }

// The barrier time of most series: their median.
inline double usual_barrier(std::vector<double> barriers) {
  const auto middle = barriers.begin() + static_cast<std::ptrdiff_t>(barriers.size() / 2);
  std::ranges::nth_element(barriers, middle);
  return *middle;
}

}  // namespace chorale::bench
