#include "parallel/mesh/call_price.hpp"

#include "collectives/backends/backends.hpp"
#include "collectives/prediction/prediction.hpp"
#include "collectives/schedule/each_message.hpp"

namespace chorale {
namespace {

double on_link(const Level* level, std::int64_t bytes) {
  return level ? static_cast<double>(bytes) * prediction::prices_of(*level).link : 0;
}

}  // namespace

Script::Call priced_call(const Selector& selector, const std::string& backend, const Decision& decision,
                         const Problem& problem, DType dtype, int rank) {
  Script::Call call{.seconds = -1,
                    .volume = volume_of_call(decision, problem, dtype, rank),
                    .scatters = problem.what == Collective::reduce_scatter};
  if (!selector.is_calibrated(backend, problem)) return call;
  call.seconds = selector.predict(backend, decision.choice.algorithm, decision.choice.chunks, problem, dtype);
  if (const int hosts = number_of_hosts(problem.hosts); hosts > 1)
    call.link =
        on_link(prediction::nearest(selector.machine(), backend, "network", problem.size, hosts), decision.bytes_crossing);
  return call;
}

CallVolume volume_of_call(const Decision& decision, const Problem& problem, DType dtype, int rank) {
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
  return volume;
}

Script::Call priced_message(const Machine& machine, const std::string& backend, std::int64_t bytes, bool across_hosts) {
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
          .volume = {bytes, bytes, 1, across_hosts ? bytes : 0, across_hosts ? 1 : 2}};
}

}  // namespace chorale
