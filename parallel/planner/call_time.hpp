// Simulates one collective on a system. The schedules of all ranks are executed in virtual time, message by message.
//
//   a message      both ends have posted it ── latency ── bytes, at the rate that its links allow (links.hpp)
//   links          each accelerator has two: out, in      each host has two to other hosts: out, in
//
// A step is posted when the steps that it waits for are complete. Sums and copies take no time in addition to their
// messages.
//
// O(messages · messages in flight).
#pragma once
#include <vector>

#include <chorale/schedule.hpp>
#include "src/base/system.hpp"

namespace chorale {

// Seconds until all ranks are done. The problem of the schedules states the host of each rank.
double seconds_of_call(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const System& system);

}  // namespace chorale
