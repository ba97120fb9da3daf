// The beat of a series of calls is the time of a barrier just before it. It shows how far apart the ranks' cores are. A
// hypervisor may move a virtual machine's cores: for some seconds they are two threads of one core, and data move between
// them three times as fast. Then prices that were measured before do not hold.
//
//   beats, µs    0.66 0.67 0.21 0.22 0.66 0.65 …    usual: 0.66, and 4 of 6 are usual
//
// If ranks outnumber cores, a beat shows where the operating system has put the ranks, and says nothing about the machine.
#pragma once
#include <algorithm>
#include <vector>

namespace chorale::bench {

// Whether cores are as far apart as usual.
inline bool is_usual(double beat, double usual) { return beat < 1.4 * usual && usual < 1.4 * beat; }

// The beat of most series: their median.
inline double usual_beat(std::vector<double> beats) {
  const auto middle = beats.begin() + static_cast<std::ptrdiff_t>(beats.size() / 2);
  std::ranges::nth_element(beats, middle);
  return *middle;
}

}  // namespace chorale::bench
