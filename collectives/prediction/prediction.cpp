#include "collectives/prediction/prediction.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace chorale::prediction {
namespace {

double ratio(int a, int b) { return std::abs(std::log(static_cast<double>(a) / b)); }

}  // namespace

const Level* nearest(const Machine& machine, const std::string& backend, const std::string& span, int ranks, int hosts) {
  const Level* best = nullptr;
  const auto far = [&](const Level& level) {
    return std::tuple((level.hosts > 1) != (hosts > 1), ratio(level.hosts, hosts), ratio(level.ranks, ranks));
  };
  for (const Level& level : machine.levels)
    if (level.backend == backend && level.span == span && (!best || far(level) < far(*best))) best = &level;
  return best;
}

double slowness(const Machine& machine, DType dtype) {
  const auto rate = [&](DType type) {
    const auto found = std::ranges::find(machine.sums, name_of(type), &SumRate::type);
    return found == machine.sums.end() ? 0 : found->rate;
  };
  const double of_f32 = rate(DType::f32), of_type = rate(dtype);
  return of_f32 > 0 && of_type > 0 ? of_f32 / of_type : 1;
}

std::optional<double> predict(const Machine& machine, const std::string& backend, bool maps_memory,
                              const std::vector<Schedule>& ranks, std::int64_t element_bytes,
                              const std::vector<int>& host_of, double slowness, const WorkBeside& beside) {
  const int size = static_cast<int>(ranks.size());
  const int hosts = host_of.empty() ? 1 : std::ranges::max(host_of) + 1;
  const Level* const within = nearest(machine, backend, "host", size, hosts);
  const Level* const between = hosts > 1 ? nearest(machine, backend, "network", size, hosts) : within;
  if (!within || !between || (maps_memory && hosts > 1) || size > most_ranks) return std::nullopt;
  Site site = Site::one_host(size, machine.cores);
  if (hosts > 1) site.host_of = host_of;
  if (!between->shared_cores) site.machine_of = site.host_of;
  Prices near = prices_of(*within), far = prices_of(*between);
  for (Prices* prices : {&near, &far}) prices->sum *= slowness;
  return maps_memory ? mapped(ranks, element_bytes, site, near, beside)
                     : messages(ranks, element_bytes, site, near, far, beside);
}

}  // namespace chorale::prediction
