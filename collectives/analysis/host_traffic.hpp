// Counts the elements and messages that each host exchanges with other hosts when all ranks run their schedules.
// Problem::hosts says which ranks share a host.
#pragma once
#include <cstdint>
#include <vector>

#include <chorale/schedule.hpp>

namespace chorale {

struct HostTraffic {
  std::int64_t elements_sent = 0, messages_sent = 0;  // sent to ranks on other hosts
  std::int64_t elements_received = 0, messages_received = 0;
};

// The result is indexed by host. Hosts are numbered in ascending order of their lowest rank.
std::vector<HostTraffic> host_traffic(const std::vector<Schedule>& ranks);

}  // namespace chorale
