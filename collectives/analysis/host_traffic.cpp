#include "collectives/analysis/host_traffic.hpp"

#include "collectives/schedule/each_message.hpp"
#include "collectives/schedule/lanes.hpp"

namespace chorale {

std::vector<HostTraffic> host_traffic(const std::vector<Schedule>& ranks) {
  const Lanes lanes(ranks.at(0).problem());
  std::vector<HostTraffic> hosts(static_cast<std::size_t>(lanes.hosts()));
  for (const Schedule& schedule : ranks)
    each_message(schedule, [&](int peer, std::int64_t elements) {
      const int from = lanes.host_of(schedule.problem().rank), to = lanes.host_of(peer);
      if (from == to) return;
      HostTraffic &sender = hosts[static_cast<std::size_t>(from)], &receiver = hosts[static_cast<std::size_t>(to)];
      ++sender.messages_sent;
      ++receiver.messages_received;
      sender.elements_sent += elements;
      receiver.elements_received += elements;
    });
  return hosts;
}

}  // namespace chorale
