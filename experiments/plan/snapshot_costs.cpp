#include "experiments/plan/snapshot_costs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/plan/wording.hpp"
#include "parallel/plan/goodput.hpp"
#include "parallel/prediction/cpu_step.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale::plan {
namespace {

std::string words_for_memory(const PlannedSnapshots& plan, const PlanRequest& request) {
  std::string words =
      fmt::format("snapshots of chorale launch: {}{} of the fullest rank (rank {})", plan.is_exact ? "" : "about ",
                  words_for_bytes(static_cast<double>(plan.bytes)), plan.fullest);
  if (plan.host_bytes < 0) return words + "; its host holds two generations of each of its ranks";
  const bool one_host =
      std::ranges::count(request.hosts, request.hosts.empty() ? 0 : request.hosts[0]) == std::ssize(request.hosts);
  return words + fmt::format("; two generations take {}{} of {}", plan.is_exact ? "" : "about ",
                             words_for_bytes(static_cast<double>(plan.host_bytes)),
                             one_host ? "the host's memory"
                                      : "a host's memory, and as much again with copies of another host's ranks");
}

std::string words_for_goodput(const SnapshotCosts& costs, const FaultTimes& times, bool knows_copies) {
  const auto percent = [](double share) { return fmt::format("{:.3g} %", 100 * share); };
  const double reached = goodput(times, costs.interval);
  const LostShares lost = lost_shares(times, costs.interval);
  std::string words =
      fmt::format("goodput {}, with a fault every {}, restarts of {} and --snapshot-interval {}: ", percent(reached),
                  human_seconds(costs.between_faults), human_seconds(costs.restart), costs.interval);
  if (knows_copies)
    words += fmt::format("snapshots of {} take {}, ", human_seconds(times.snapshot), percent(lost.snapshots));
  words += fmt::format("lost steps {}, restarts {}{}", percent(lost.steps), percent(lost.restarts),
                       reached < 1e-6 ? ", so the run makes no progress" : "");
  if (!knows_copies) return words + "; the time of snapshots is left out, because the machine file has no rate for them";
  const std::int64_t best = best_interval(times);
  if (goodput(times, best) > reached)
    words += fmt::format("; best: --snapshot-interval {}, goodput {}", best, percent(goodput(times, best)));
  return words;
}

}  // namespace

void SnapshotCosts::declare(Options& o, const std::function<std::string()>& why_not) {
  const std::string needs = "the plan of one layout";
  o.add("snapshot-interval", interval, "steps between the snapshots of chorale launch, whose cost is shown; 0: none")
      .range(0, 1e9)
      .only_where(needs, why_not);
  o.add_seconds("mtbf", between_faults, "mean time between faults of the whole run, for the predicted goodput")
      .only_where(needs, why_not);
  o.add_seconds("restart-time", restart, "time from a fault to the next step, for the predicted goodput")
      .only_where(needs, why_not);
}

void SnapshotCosts::check() const {
  if (between_faults <= 0)
    usage_error("faults need some time between them", fmt::format("--mtbf {:g}s", between_faults),
                "name the mean time between faults of the whole run, such as --mtbf 4h");
}

// A snapshot takes as long as the optimizer takes to read or write this many times the bytes, if all ranks do the same. The
// copy reads the state and writes the snapshot past the caches; the rest is what a core loses against the optimizer's loop.
// Fitted to a run of nano on two cores. On a system, the state is first copied to the host, whose memory the ranks share.
constexpr double passes_of_snapshot = 3.7;

std::optional<double> seconds_of_snapshot(std::int64_t bytes, const PlanRequest& request,
                                          const std::optional<System>& system) {
  const double passes = passes_of_snapshot * static_cast<double>(bytes);
  if (system) {
    if (system->host.offload <= 0 || system->host.memory <= 0) return std::nullopt;
    return static_cast<double>(bytes) / system->host.offload + passes * system->host.accelerators / system->host.memory;
  }
  const Machine machine = request.selector ? request.selector->machine() : Machine{};
  const ComputeRates* const rates = rates_of(machine, request.options.compute, static_cast<int>(request.layout.ranks()));
  return rates ? std::optional(passes / rates->update) : std::nullopt;
}

void add_snapshot_costs(Document& document, const SnapshotCosts& costs, const PlanRequest& request,
                        const std::optional<System>& system, double step_seconds) {
  if (costs.interval == 0) return;
  const PlannedSnapshots plan = plan_snapshots(request);
  document.fact("snapshot_rank", plan.fullest);
  document.fact("snapshot_bytes", plan.bytes);
  document.fact("snapshot_exact", plan.is_exact);
  if (plan.host_bytes >= 0) document.fact("snapshot_host_bytes", plan.host_bytes);
  document.words(words_for_memory(plan, request) + "\n");
  if (step_seconds <= 0) return;
  const std::optional<double> copy = seconds_of_snapshot(plan.bytes, request, system);
  const FaultTimes times{
      .step = step_seconds, .snapshot = copy.value_or(0), .restart = costs.restart, .between_faults = costs.between_faults};
  if (copy) document.fact("snapshot_s", *copy);
  document.fact("goodput", goodput(times, costs.interval));
  if (copy) document.fact("best_snapshot_interval", best_interval(times));
  document.words("  " + words_for_goodput(costs, times, copy.has_value()) + "\n");
}

}  // namespace chorale::plan
