#include "parallel/plan/order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "parallel/context/context.hpp"
#include "parallel/mesh/placement.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

double sum_of(const SentByGroup& sent) {
  return std::accumulate(sent.begin(), sent.end(), 0.0, [](double sum, const auto& group) { return sum + group.second; });
}

std::string words_for(double bytes) { return human_bytes(std::llround(bytes)); }

}  // namespace

SentByGroup sent_in_a_step(const PlanRequest& request) {
  PlanRequest by_ring = request;
  by_ring.backends = {{"", "mpi"}};
  by_ring.algorithms = {{"", "ring"}};
  const std::int64_t stages = request.layout.stages();
  SentByGroup sent;
  std::map<std::string, std::int64_t> senders;  // number of stages that have a group of this name: 2 for `ends`, usually all
                                                // stages for other groups
  const auto add = [&](std::int64_t stage, std::int64_t times) {
    for (const auto& [name, account] : plan_rank(by_ring, rank_of_stage(request.layout, stage)).axes) {
      if (std::ranges::all_of(account.entries, [](const Account::Entry& entry) { return entry.calls == 0; })) continue;
      for (const Account::Entry& entry : account.entries) sent[name] += static_cast<double>(times * entry.bytes);
      senders[name] += times;
    }
  };
  add(0, 1);
  if (stages > 1) add(stages - 1, 1);
  if (stages > 2) add(1, stages - 2);  // all stages except the first and last send equally many bytes
  for (auto& [name, bytes] : sent) bytes /= static_cast<double>(senders.at(name));
  return sent;
}

SentByGroup sent_across_hosts(const Layout& layout, const SentByGroup& sent, const Topology& topology) {
  SentByGroup across;
  for (const RankGroup& group : groups_of(layout)) {
    const auto price = sent.find(group.name);
    if (price == sent.end()) continue;
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      const int next = group.ranks[(i + 1) % group.ranks.size()];
      if (!topology.together(std::array{group.ranks[i], next})) across[group.name] += price->second;
    }
  }
  return across;
}

std::string why_not_on(const Topology& topology, const Layout& layout, const ByAxis& backends,
                       const TrainingOptions& options) {
  if (!in_reach(layout, backends, topology)) return "an axis would leave the reach of its backend";
  const MaybeMisfit misfit = misfit_on_hosts(options.context, options.shape, layout, topology.host_of);
  return misfit ? misfit->numbers : "";
}

OrderChoice cheapest_order(const Layout& layout, const WhyNot& why_not, const SentByGroup& sent, const Topology& topology) {
  const std::vector<AxisOrder> orders = orders_of(layout);
  Layout best = layout, tried = layout;
  double least = std::numeric_limits<double>::infinity();
  for (const AxisOrder& order : orders) {
    tried.order = order;
    if (!why_not(tried).empty()) continue;
    if (const double bytes = sum_of(sent_across_hosts(tried, sent, topology)); bytes < least) {
      best = tried;
      least = bytes;
    }
  }
  if (best.has_usual_order()) return {};
  best.order = best.outwards_in();
  tried.order = orders.front();
  const std::string named = fmt::format("order: {}", join(best.order, ","));
  if (const std::string why = why_not(tried); !why.empty())
    return {best.order, fmt::format("{}, because in the usual order {}", named, why)};
  const SentByGroup usual = sent_across_hosts(tried, sent, topology);
  const auto most = std::ranges::max_element(usual, {}, [](const auto& group) { return group.second; });
  return {best.order,
          fmt::format("{}, because {} would send {} of a step across hosts in the usual order; now {} cross in all", named,
                      most->first, words_for(most->second), words_for(least))};
}

}  // namespace chorale
