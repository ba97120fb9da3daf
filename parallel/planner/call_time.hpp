// Executes one collective on a system in virtual time: the schedules of all ranks, message by message.
//
//   a message      both ends have posted it ── latency ── bytes, at the rate that its links leave (links.hpp)
//   links          of each accelerator: out, in        of each host, to other hosts: out, in
//
// A step is posted when the steps that it waits for are over. Sums and copies take no time beside their messages.
//
// O(messages · messages in flight).
#pragma once
#include <vector>

#include "collectives/schedule/schedule.hpp"
#include "src/base/system.hpp"

namespace chorale {

// Seconds until all ranks are done. The problem of the schedules says on which hosts the ranks are.
double seconds_of_call(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const System& system);

}  // namespace chorale
