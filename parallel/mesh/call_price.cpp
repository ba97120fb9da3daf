#include "parallel/mesh/call_price.hpp"

#include <algorithm>

#include "collectives/backends/backends.hpp"
#include "collectives/prediction/prediction.hpp"
#include "collectives/schedule/each_message.hpp"
#include "src/base/index.hpp"

namespace chorale {
namespace {

// How many of a rank's messages have the latency between hosts. In a ring, every rank sends to its successor, and all ranks
// wait for the same chain of messages around the ring. The chain crosses hosts as often as `sent` successive links of the
// ring do, wherever they begin.
//
//   4 ranks on 2 hosts, all_gather      0 ─ 1 ═ 2 ─ 3 ═ 0      a chain of 3 messages crosses hosts twice
std::int64_t messages_crossing(const Schedule& own, const Problem& problem, std::int64_t sent) {
  const int size = problem.size, next = (problem.rank + 1) % size;
  std::int64_t crossing = 0;
  bool is_ring = sent >= size - 1;
  const auto crosses = [&](int from, int to) { return problem.hosts[index(from)] != problem.hosts[index(to)]; };
  each_message(own, [&](int peer, std::int64_t) {
    is_ring = is_ring && peer == next;
    crossing += crosses(problem.rank, peer);
  });
  if (!is_ring) return crossing;
  const auto chain = [&](int first, std::int64_t links) {
    std::int64_t count = 0;
    for (int link = first; link < first + links; ++link) count += crosses(link % size, (link + 1) % size);
    return count;
  };
  const std::int64_t turns = sent / size, rest = sent % size;
  std::int64_t most = chain(0, rest);
  for (std::int64_t first = 0, count = most; first < size; ++first) {  // moves the chain's beginning from link to link
    count += chain(static_cast<int>(first + rest), 1) - chain(static_cast<int>(first), 1);
    most = std::max(most, count);
  }
  return turns * chain(0, size) + most;
}

double on_link(const Level* level, std::int64_t bytes) {
  return level ? static_cast<double>(bytes) * prediction::prices_of(*level).link : 0;
}

}  // namespace

Script::Call priced_call(const Selector& selector, const std::string& backend, const Decision& decision,
                         const Problem& problem, const std::vector<int>& switches, DType dtype, int rank) {
  Script::Call call{.seconds = -1,
                    .volume = volume_of_call(decision, problem, switches, dtype, rank),
                    .scatters = problem.what == Collective::reduce_scatter};
  if (!selector.is_calibrated(backend, problem)) return call;
  call.seconds = selector.predict(backend, decision.choice.algorithm, decision.choice.chunks, problem, dtype);
  if (const int hosts = number_of_hosts(problem.hosts); hosts > 1)
    call.link =
        on_link(prediction::nearest(selector.machine(), backend, "network", problem.size, hosts), decision.bytes_crossing);
  return call;
}

CallVolume volume_of_call(const Decision& decision, const Problem& problem, const std::vector<int>& switches, DType dtype,
                          int rank) {
  const std::int64_t each = size_of(dtype);
  CallVolume volume{.vector = each * problem.blocks.total(), .on_host = problem.size};
  if (!decision.algorithm) return volume;
  const Schedule own = decision.algorithm->plan(problem.at(rank));
  volume.sent = each * own.elements_sent();
  each_message(own, [&](int, std::int64_t) { ++volume.messages; });
  if (number_of_hosts(problem.hosts) == 1) return volume;
  volume.on_host = 0;
  const auto host = [&](int r) { return problem.hosts[static_cast<std::size_t>(r)]; };
  for (int other = 0; other < problem.size; ++other)
    if (host(other) == host(rank)) {
      ++volume.on_host;
      volume.host_crossing += each * decision.algorithm->plan(problem.at(other)).elements_crossing();
    }
  volume.messages_crossing = messages_crossing(own, problem.at(rank), volume.messages);
  const auto leaf = [&](int r) { return switches[static_cast<std::size_t>(r)]; };
  for (int other = 0; other < std::ssize(switches); ++other)
    if (leaf(other) == leaf(rank))
      each_message(decision.algorithm->plan(problem.at(other)), [&](int peer, std::int64_t elements) {
        if (leaf(peer) != leaf(rank)) volume.switch_crossing += each * elements;
      });
  return volume;
}

Script::Call priced_message(const Machine& machine, const std::string& backend, std::int64_t bytes, bool across_hosts,
                            bool across_switches) {
  const std::vector<int> hosts = across_hosts ? std::vector{0, 1} : std::vector<int>{};
  const Problem pair = Problem::even(Collective::broadcast, bytes, 2, 0, false, hosts);
  Schedule sender(pair), receiver(pair.at(1));
  sender.send(1, input(0, bytes));
  receiver.recv(0, output(0, bytes));
  const bool maps = backend_named(backend).maps_memory;
  const auto seconds = prediction::predict(machine, backend, maps, {sender, receiver}, 1, hosts);
  const Level* const level =
      prediction::nearest(machine, backend, across_hosts ? "network" : "host", 2, across_hosts ? 2 : 1);
  const bool waits = maps || !level || static_cast<double>(bytes) > prediction::prices_of(*level).eager_bytes;
  return {.seconds = seconds.value_or(-1),
          .waits = waits,
          .link = across_hosts ? on_link(level, bytes) : 0,
          .volume = {.vector = bytes,
                     .sent = bytes,
                     .messages = 1,
                     .host_crossing = across_hosts ? bytes : 0,
                     .on_host = across_hosts ? 1 : 2,
                     .messages_crossing = across_hosts ? 1 : 0,
                     .switch_crossing = across_switches ? bytes : 0}};
}

}  // namespace chorale
