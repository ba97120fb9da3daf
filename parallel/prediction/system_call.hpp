// Simulates one collective on a system of accelerators. The schedules of all ranks are executed in simulated time, message
// by message.
//
//   a message      sender and receiver have posted it ── latency ── bytes, at the rate that its links allow
//   links          each accelerator has two: out, in      each host has two to other hosts: out, in
//                  each leaf switch has two to other leaf switches: out, in
//
// A step of a schedule is posted when the steps on which it depends are complete. Sums and local copies are assumed to take
// no time.
//
// O(messages · messages in flight).
#pragma once
#include <vector>

#include <chorale/schedule.hpp>
#include "src/base/system.hpp"

namespace chorale {

// Returns the time, in seconds, until all ranks are done. `hosts`: the host of each rank; empty if all are on one host. The
// schedules can be those of several groups that call at the same time (side_by_side.hpp).
double seconds_of_call(const std::vector<Schedule>& ranks, const std::vector<int>& hosts, std::int64_t element_bytes,
                       const System& system);

}  // namespace chorale
