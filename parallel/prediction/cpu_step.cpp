#include "parallel/prediction/cpu_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "collectives/prediction/prediction.hpp"

namespace chorale {
namespace {

// Emulated hosts share the cores of one machine.
prediction::Site site_of(const Machine& machine, const std::vector<int>& hosts, int ranks) {
  prediction::Site site = prediction::Site::one_host(ranks, machine.cores);
  if (hosts.empty()) return site;
  site.host_of = hosts;
  const auto shares = [](const Level& level) { return level.shared_cores; };
  if (std::ranges::none_of(machine.levels, shares)) site.machine_of = hosts;
  return site;
}

std::string unpriced(const Script& script) {
  for (const Script::Call& call : script.calls())
    if (call.seconds < 0) return fmt::format("no price of the calls of {}", call.group);
  return "";
}

}  // namespace

const ComputeRates* rates_of(const Machine& machine, DType compute, int ranks) {
  const ComputeRates* best = nullptr;
  const auto far = [&](const ComputeRates& rates) { return std::abs(std::log(static_cast<double>(rates.ranks) / ranks)); };
  for (const ComputeRates& rates : machine.computes)
    if (rates.type == name_of(compute) && (!best || far(rates) < far(*best))) best = &rates;
  return best;
}

PredictedCpuStep predict_cpu_step(const PlanRequest& request) {
  const Layout& layout = request.layout;
  const int ranks = static_cast<int>(layout.ranks());
  if (request.options.kernels.device) return {{}, "times on GPUs are not predicted"};
  if (request.options.numerics != NumericsKind::fast) return {{}, "only fast numerics are predicted"};
  if (layout.ranks() > prediction::most_ranks)
    return {{},
            fmt::format("the prices of a host's cores predict at most {} ranks, and the layout has {}",
                        prediction::most_ranks, layout.ranks())};
  const Machine machine = request.selector ? request.selector->machine() : Machine{};
  const ComputeRates* const rates = rates_of(machine, request.options.compute, ranks);
  if (!rates) return {{}, fmt::format("the machine file has no compute rates of {}", name_of(request.options.compute))};
  using Place = std::pair<std::int64_t, std::int64_t>;  // stage, context rank
  std::map<Place, Script> script_at;
  std::vector<const Script*> scripts;
  for (int rank = 0; rank < ranks; ++rank) {
    const Place place{stage_of(layout, rank), context_rank_of(layout, rank)};
    const auto [at, is_new] = script_at.try_emplace(place);
    if (is_new) at->second = script_of(request, rank_of_stage(layout, place.first, false, place.second));
    if (const std::string why_not = unpriced(at->second); !why_not.empty()) return {{}, why_not};
    scripts.push_back(&at->second);
  }
  const Speeds speeds{rates->product, rates->attention, rates->elements, rates->update};
  return {simulate(scripts, groups_of(layout), site_of(machine, request.hosts, ranks), speeds), "",
          origin_of(machine, *rates)};
}

}  // namespace chorale
