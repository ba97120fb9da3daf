#include "collectives/analysis/host_traffic.hpp"

#include "collectives/schedule/lanes.hpp"

namespace chorale {

std::vector<HostTraffic> host_traffic(const std::vector<Schedule>& ranks) {
  const Lanes lanes(ranks.at(0).problem());
  std::vector<HostTraffic> hosts(static_cast<std::size_t>(lanes.hosts()));
  for (const Schedule& schedule : ranks)
    for (const Step& step : schedule.steps)
      for (const int peer : step.peers) {
        const int from = lanes.host_of(schedule.problem().rank), to = lanes.host_of(peer);
        if (step.kind != Kind::send || from == to) continue;
        HostTraffic &sender = hosts[static_cast<std::size_t>(from)], &receiver = hosts[static_cast<std::size_t>(to)];
        ++sender.messages_sent;
        ++receiver.messages_received;
        sender.elements_sent += step.src[0].count;
        receiver.elements_received += step.src[0].count;
      }
  return hosts;
}

}  // namespace chorale
