#include "parallel/planner/step.hpp"

#include <cmath>
#include <memory>
#include <tuple>

#include "parallel/assemble.hpp"
#include "src/base/error.hpp"

namespace chorale {
namespace {

// Jobs on many hosts contain a slow one with a probability that grows with their number. A step lasts until the slowest
// rank is done.
double slowness(const NetworkLinks& network, int hosts) {
  return 1 + network.slow_by * (1 - std::pow(1 - network.slow_hosts, hosts));
}

}  // namespace

std::vector<int> hosts_of(const System& system, std::int64_t ranks) {
  std::vector<int> hosts;
  for (std::int64_t rank = 0; rank < ranks; ++rank) hosts.push_back(static_cast<int>(rank / system.host.accelerators));
  return hosts;
}

PredictedStep predict_step(const StepRequest& request) {
  StageRequest recorded{request.plan, request.products, name_of(request.plan.options.compute)};
  if (recorded.products.empty()) recorded.products = recorded.others;
  const Layout& layout = request.plan.layout;
  const TrainingOptions& options = request.plan.options;
  recorded.plan.hosts = hosts_of(request.system, layout.ranks());
  if (recorded.plan.hosts.back() == 0) recorded.plan.hosts.clear();

  // Middle stages with equal numbers of blocks have equal scripts.
  const PipelineSchedule schedule = schedule_of(options, layout);
  using Place = std::pair<std::int64_t, std::int64_t>;  // stage, context rank
  std::map<Place, int> script_at;
  std::vector<std::unique_ptr<StageCost>> scripts;
  std::vector<int> script_of_rank;
  std::vector<Place> places;
  for (std::int64_t rank = 0; rank < layout.ranks(); ++rank) {
    const Place place{stage_of(layout, rank), context_rank_of(layout, rank)};
    const auto [found, is_new] = script_at.try_emplace(place, static_cast<int>(scripts.size()));
    if (is_new) {
      scripts.push_back(std::make_unique<StageCost>(stage_cost(recorded, request.system, place.first, place.second)));
      places.push_back(place);
    }
    script_of_rank.push_back(found->second);
  }

  PredictedStep predicted;
  std::vector<int> colors = script_of_rank;
  if (!request.folded)
    for (std::size_t rank = 0; rank < colors.size(); ++rank) colors[rank] = static_cast<int>(rank);
  predicted.ranks = fold(groups_of(layout), colors, request.system.host.accelerators);
  std::vector<const StageCost*> costs;
  std::vector<std::int64_t> stages;
  for (const RankClass& one : predicted.ranks.classes) {
    const auto script = static_cast<std::size_t>(script_of_rank[static_cast<std::size_t>(one.rank)]);
    costs.push_back(scripts[script].get()), stages.push_back(places[script].first);
  }
  predicted.step = execute({request.system, predicted.ranks, costs, stages, schedule});
  const int hosts = recorded.plan.hosts.empty() ? 1 : recorded.plan.hosts.back() + 1;
  predicted.seconds = predicted.step.seconds * slowness(request.system.network, hosts);
  predicted.model_flops =
      options.shape.flops_per_token() * static_cast<double>(options.global_batch * options.shape.sequence);
  predicted.peak_flops = rate_of(request.system.accelerator, recorded.products).flops * static_cast<double>(layout.ranks());
  return predicted;
}

}  // namespace chorale
