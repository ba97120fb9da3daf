// The beat of a series of calls is the time of a barrier just before it. It shows how far apart the ranks' cores are. A
// hypervisor may move a virtual machine's cores: for some seconds they are nearer to each other, perhaps as two threads of
// one core, and data move between them up to three times as fast. Then prices that were measured before do not hold.
//
//   beats, µs    0.68 0.71 0.42 0.43 0.66 0.68 …    usual: 0.68, and 4 of 6 are usual
//
// If ranks outnumber cores, a beat shows where the operating system has put the ranks, and says nothing about the machine.
#pragma once
#include <algorithm>
#include <vector>

namespace chorale::bench {

// Whether cores are as far apart as usual.
inline bool is_usual(double beat, double usual) { return beat < 1.25 * usual && usual < 1.25 * beat; }

// The beat of most series: their median.
inline double usual_beat(std::vector<double> beats) {
  const auto middle = beats.begin() + static_cast<std::ptrdiff_t>(beats.size() / 2);
  std::ranges::nth_element(beats, middle);
  return *middle;
}

}  // namespace chorale::bench
