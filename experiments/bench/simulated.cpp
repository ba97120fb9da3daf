#include "experiments/bench/simulated.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collectives/backends/backends.hpp"
#include "collectives/choice/decision.hpp"
#include "collectives/prediction/prediction.hpp"
#include "experiments/common/machine_named.hpp"
#include "experiments/common/simulated.hpp"
#include "parallel/mesh/call_price.hpp"
#include "parallel/prediction/cpu_step.hpp"
#include "parallel/prediction/kernel_time.hpp"
#include "parallel/prediction/stage_cost.hpp"
#include "parallel/prediction/system_call.hpp"
#include "parallel/prediction/system_step.hpp"
#include "src/base/error.hpp"
#include "src/base/index.hpp"
#include "src/base/progress.hpp"
#include "src/base/text.hpp"

namespace chorale::bench {
namespace {

class BenchSimulation {
 public:
  BenchSimulation(const Sweep& sweep, const std::string& backend)
      : sweep_(sweep), machine_(machine_named(simulated_machine(backend))) {
    if (!machine_.system && sweep.threads > prediction::most_ranks)
      usage_error("too many ranks to simulate", fmt::format("{} ranks on {}", sweep.threads, backend),
                  fmt::format("take at most --ranks {}, or a machine of accelerators", prediction::most_ranks));
    if (machine_.system && !sweep.wanted.hosts.empty()) refuse_hosts(backend, *machine_.system);
    if (!machine_.system) priced_ = priced_backend(machine_, backend, number_of_hosts(sweep.wanted.hosts) > 1);
    hosts_ = sweep.wanted.hosts;
    if (machine_.system) {
      require_network(*machine_.system, sweep.threads);
      hosts_ = hosts_of(*machine_.system, sweep.threads);
      switches_ = switches_of(*machine_.system, sweep.threads);
      if (hosts_.back() == 0) hosts_.clear();
    }
    const Groups& groups = sweep.how.groups;
    groups.require_equal(sweep.threads, hosts_);
    const SideBySide all = groups.among(sweep.threads, hosts_);
    stage_ = {.backend = backend,
              .ranks = sweep.threads / groups.number,
              .has_native = std::vector<bool>(std::size(collective_names)),
              .hosts = groups.number > 1 ? hosts_among(all.groups[0], hosts_) : hosts_,
              .sums = false};
    if (groups.number > 1) stage_.all = all;
  }

  Outcome run(const Session& session) {
    WantedCases wanted = sweep_.wanted;
    wanted.hosts.clear();  // they are in stage_.hosts
    const CaseGrid grid = make_grid(wanted, stage_);
    for (const std::string& line : grid.skipped) fmt::print(stderr, "skipped: {}\n", line);
    Outcome outcome{{}, std::ssize(grid.cases)};
    Progress progress = session.progress("bench " + stage_.backend, outcome.rows);
    for (const BenchCase& row : grid.cases) {
      progress.update(std::ssize(outcome.series),
                      fmt::format("{} {} {}", name_of(row.what), row.algorithm, human_bytes(row.bytes())));
      if (sweep_.how.told_to_stop && sweep_.how.told_to_stop()) {
        outcome.stopped = true;
        break;
      }
      outcome.series.push_back(series_of(row));
    }
    return outcome;
  }

 private:
  Series series_of(const BenchCase& row) const {
    std::optional<Series> best;
    for (const Algorithm& algorithm : all_algorithms()) {
      if (algorithm.what != row.what || (row.algorithm != "auto" && row.algorithm != algorithm.name)) continue;
      if (!fits(algorithm, row.problem())) continue;
      Series series = timed(row, algorithm);
      if (!best || series.slowest[0] < best->slowest[0]) best = std::move(series);
    }
    require(best.has_value(), "no algorithm fits {}", name_of(row.what));
    return *best;
  }

  // The closed form is exact for a ring whose links all have the same bandwidth.
  double closed_form_of(const BenchCase& row, const Algorithm& ring) const {
    const CallVolume volume = volume_of_call({.algorithm = &ring}, row.problem(), switches_, row.dtype, 0);
    const auto on_first_host = [&](const std::vector<int>& group) {
      return hosts_.empty() || std::ranges::any_of(group, [&](int rank) { return hosts_[index(rank)] == hosts_[0]; });
    };
    const auto on_host = static_cast<int>(std::ranges::count_if(row.all.groups, on_first_host));
    return time_of_call({.volume = volume}, *machine_.system, std::max(1, on_host)).total();
  }

  double priced(const std::vector<Schedule>& ranks, DType dtype, const prediction::WorkBeside& beside = {}) const {
    const auto seconds = prediction::predict(machine_, priced_, backend_named(priced_).maps_memory, ranks, size_of(dtype),
                                             hosts_, prediction::slowness(machine_, dtype), beside);
    if (!seconds)
      usage_error("the machine file has no prices for these hosts",
                  fmt::format("{} has no [[level]] of {} between hosts", stage_.backend, priced_),
                  "calibrate on these hosts (docs/machine_file.md), or leave out --hosts");
    return *seconds;
  }

  // The call beside products, of which each rank computes as many as take about as long as the call. On a machine of
  // accelerators, a call uses no multiprocessors, so neither delays the other.
  BesideTimes beside(const BenchCase& row, const std::vector<Schedule>& ranks, double call) const {
    const KernelWork product{.work = Work::product,
                             .amount = product_flops,
                             .bytes = 3.0 * product_edge * product_edge * static_cast<double>(size_of(row.dtype)),
                             .m = product_edge,
                             .n = product_edge,
                             .k = product_edge};
    const std::string type = name_of(row.dtype);
    double one = 0;
    if (machine_.system) {
      one = KernelTimes(*machine_.system, type, type, false).of(product).total();
    } else if (const ComputeRates* const rates = rates_of(machine_, DType::f32, sweep_.threads)) {
      one = product_flops / rates->product;
    } else {
      usage_error("the machine file has no compute rates of f32",
                  fmt::format("{} has no [[compute]] of f32", stage_.backend),
                  "calibrate it again (docs/machine_file.md), or leave out --beside");
    }
    const std::int64_t products = std::max<std::int64_t>(1, std::llround(call / one));
    BesideTimes found{.products = products, .alone = static_cast<double>(products) * one};
    if (machine_.system) {
      found.call = call;
      found.slowed = found.alone;
      found.both = std::max(call, found.alone);
    } else {
      found.both = priced(ranks, row.dtype, {products, one});
    }
    return found;
  }

  Series timed(const BenchCase& row, const Algorithm& algorithm) const {
    const std::int64_t each = size_of(row.dtype);
    const Plan plan{
        .algorithm = &algorithm, .problem = row.problem(), .dtype = row.dtype, .op = row.op, .chunks = row.chunks};
    std::vector<Schedule> ranks = schedules_of(plan);
    if (!row.all.groups.empty()) ranks = side_by_side(ranks, row.all);
    Series series{.row = row, .choice = {.algorithm = algorithm.name, .chunks = row.chunks}, .bytes_sent = 0};
    double seconds = 0;
    if (machine_.system) {
      seconds = seconds_of_call(ranks, hosts_, each, *machine_.system);
      if (algorithm.name == std::string("ring") && (switches_.empty() || row.all.groups.empty()))
        series.closed_form = closed_form_of(row, algorithm);  // which does not share uplinks among groups
    } else {
      seconds = priced(ranks, row.dtype);
    }
    if (sweep_.how.beside_products) series.beside = beside(row, ranks, seconds);
    series.times = {{seconds}};
    series.slowest = {seconds};
    for (const Schedule& schedule : ranks) series.bytes_sent += static_cast<double>(schedule.elements_sent() * each);
    return series;
  }

  const Sweep& sweep_;
  Machine machine_;
  std::string priced_;      // the backend whose prices apply on a machine without accelerators
  std::vector<int> hosts_;  // the host of each rank of all groups; empty if there is one host
  BenchWorld stage_;
  std::vector<int> switches_;  // the leaf switch of each rank
};

}  // namespace

Outcome simulate(const Sweep& sweep, const std::string& backend, const Session& session) {
  return BenchSimulation(sweep, backend).run(session);
}

}  // namespace chorale::bench
