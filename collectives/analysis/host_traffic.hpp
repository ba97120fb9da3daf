// From the schedules of all ranks, counts the elements and messages that the ranks of each host exchange with ranks of other
// hosts. Problem::hosts says which ranks share a host.
#pragma once
#include <cstdint>
#include <vector>

#include <chorale/schedule.hpp>

namespace chorale {

struct HostTraffic {
  std::int64_t elements_sent = 0, messages_sent = 0;  // sent to ranks on other hosts
  std::int64_t elements_received = 0, messages_received = 0;
};

// The result is indexed by host; hosts are numbered in the order of their first rank.
std::vector<HostTraffic> host_traffic(const std::vector<Schedule>& ranks);

}  // namespace chorale
