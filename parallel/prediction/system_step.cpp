#include "parallel/prediction/system_step.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numeric>
#include <tuple>

#include "parallel/step/assemble.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// Returns the factor by which slow hosts lengthen a step. A step lasts until the slowest rank is done, and a job on many
// hosts is likely to have a slow host.
double slowness(const NetworkLinks& network, int hosts) {
  return 1 + network.slow_by * (1 - std::pow(1 - network.slow_hosts, hosts));
}

// Returns a number for each rank. Ranks with equal numbers have the same script. Two ranks get the same number if they have
// the same stage and context rank, and if their groups are spread over hosts and leaf switches in the same way. In
// particular, each of their groups has equally many ranks on the rank's own host, and under its leaf switch.
std::vector<int> scripts_of(const Layout& layout, const std::vector<RankGroup>& groups, const std::vector<int>& hosts,
                            const std::vector<int>& switches) {
  std::vector<std::vector<int>> seen;
  for (int rank = 0; rank < layout.ranks(); ++rank)
    seen.push_back({static_cast<int>(stage_of(layout, rank)), static_cast<int>(context_rank_of(layout, rank))});
  std::map<std::tuple<std::string, std::vector<int>, std::vector<int>>, int> patterns;
  for (const RankGroup& group : groups) {
    const std::vector<int> on = hosts_among(group.ranks, hosts);  // the host number of each rank: 0, 0, 1, 1 …
    const std::vector<int> under = hosts_among(group.ranks, switches);
    std::map<int, int> ranks_on, ranks_under;
    for (const int host : on) ++ranks_on[host];
    for (const int place : under) ++ranks_under[place];
    const int pattern = patterns.try_emplace({group.name, on, under}, static_cast<int>(patterns.size())).first->second;
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      std::vector<int>& own = seen[static_cast<std::size_t>(group.ranks[i])];
      own.push_back(pattern);
      own.push_back(on.empty() ? 0 : ranks_on[on[i]]);
      own.push_back(under.empty() ? 0 : ranks_under[under[i]]);
    }
  }
  std::map<std::vector<int>, int> numbers;
  std::vector<int> scripts;
  for (std::vector<int>& own : seen) {
    std::vector<std::array<int, 3>> of_groups;  // sorted, so that the order of the groups does not matter
    for (std::size_t i = 2; i < own.size(); i += 3) of_groups.push_back({own[i], own[i + 1], own[i + 2]});
    std::ranges::sort(of_groups);
    own.resize(2);
    for (const auto& of_group : of_groups) own.insert(own.end(), of_group.begin(), of_group.end());
    scripts.push_back(numbers.try_emplace(own, static_cast<int>(numbers.size())).first->second);
  }
  return scripts;
}

void require_copies(const OffloadOptions& offload, const HostLinks& host) {
  std::vector<std::string> missing;
  const auto need = [&](const char* key, double rate) {
    if (rate == 0) missing.emplace_back(key);
  };
  need("offload", host.offload);
  if (offload.to_host && offload.optimizer) need("memory", host.memory);
  if (!offload.to_host) need("file_read", host.file_read);
  if (!offload.to_host) need("file_write", host.file_write);
  if (missing.empty()) return;
  usage_error("the machine file lacks a speed that the offload needs",
              fmt::format("{}, but [host] has no {}", words_of(offload), join(missing, ", no ")),
              fmt::format("add {}, in B/s, to [host] (docs/machine_file.md), or leave out --place", join(missing, ", ")));
}

}  // namespace

std::vector<int> hosts_of(const System& system, std::int64_t ranks) {
  std::vector<int> hosts;
  for (std::int64_t rank = 0; rank < ranks; ++rank) hosts.push_back(static_cast<int>(rank / system.host.accelerators));
  return hosts;
}

std::vector<int> switches_of(const System& system, std::int64_t ranks) {
  if (!system.network.has_switches()) return {};
  std::vector<int> switches = hosts_of(system, ranks);
  for (int& place : switches) place = system.network.switch_of(place);
  return switches;
}

void require_network(const System& system, std::int64_t ranks) {
  if (ranks <= system.host.accelerators || system.network.adapters > 0) return;
  usage_error("the machine has no network between hosts",
              fmt::format("{} ranks, {} accelerators on a host", ranks, system.host.accelerators),
              "add [network] to its file (docs/machine_file.md), or take fewer ranks");
}

void require_predictable(const StepRequest& request) {
  const TrainingOptions& o = request.plan.options;
  const System& s = request.system;
  require_network(s, request.plan.layout.ranks());
  if (o.offload.any()) require_copies(o.offload, s.host);
  if (o.numerics != NumericsKind::fast)
    usage_error("only fast numerics are predicted", fmt::format("numerics {}", name_of(o.numerics)), "leave out --numerics");
  rate_of(s.accelerator, name_of(o.compute));
  if (!request.products.empty()) rate_of(s.accelerator, request.products);
}

PredictedStep predict_step(const StepRequest& request) {
  require_predictable(request);
  StageRequest recorded{request.plan, request.products, name_of(request.plan.options.compute)};
  if (recorded.products.empty()) recorded.products = recorded.others;
  const Layout& layout = request.plan.layout;
  const TrainingOptions& options = request.plan.options;
  recorded.plan.hosts = hosts_of(request.system, layout.ranks());
  const int hosts = recorded.plan.hosts.back() + 1;
  if (hosts == 1) recorded.plan.hosts.clear();
  recorded.plan.switches = switches_of(request.system, layout.ranks());

  const PipelineSchedule schedule = schedule_of(options, layout);
  const std::vector<RankGroup> groups = groups_of(layout);
  std::vector<int> script_of_rank = scripts_of(layout, groups, recorded.plan.hosts, recorded.plan.switches);
  if (!request.folded) std::iota(script_of_rank.begin(), script_of_rank.end(), 0);
  PredictedStep predicted;
  predicted.ranks = fold(groups, script_of_rank, request.system.host.accelerators, request.system.network.switch_hosts);
  std::map<int, StageCost> scripts;
  std::vector<const StageCost*> costs;
  std::vector<std::int64_t> stages;
  for (const RankClass& one : predicted.ranks.classes) {
    const auto [script, is_new] = scripts.try_emplace(script_of_rank[static_cast<std::size_t>(one.rank)]);
    if (is_new) script->second = stage_cost(recorded, request.system, one.rank);
    costs.push_back(&script->second);
    stages.push_back(stage_of(layout, one.rank));
  }
  predicted.step = execute({request.system, predicted.ranks, costs, stages, schedule});
  predicted.seconds = predicted.step.seconds * slowness(request.system.network, hosts);
  predicted.model_flops =
      options.shape.flops_per_token() * static_cast<double>(options.batch.global * options.shape.sequence);
  predicted.peak_flops = rate_of(request.system.accelerator, recorded.products).flops * static_cast<double>(layout.ranks());
  return predicted;
}

}  // namespace chorale
