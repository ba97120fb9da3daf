#include "experiments/bench/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "collectives/backends/backends.hpp"
#include "collectives/backends/threads.hpp"
#include "collectives/call/world.hpp"
#include "experiments/bench/simulated.hpp"
#include "experiments/common/advice.hpp"
#include "experiments/common/machine_watch.hpp"
#include "experiments/common/random_order.hpp"
#include "experiments/common/simulated.hpp"
#include "src/base/host.hpp"
#include "src/base/progress.hpp"
#include "src/base/text.hpp"
#include "src/base/topology.hpp"

namespace chorale::bench {
namespace {

void say_skipped(const std::string& what) {
  std::fputs(fmt::format("skipped: {}\n", what).c_str(), stderr);
  std::fflush(stderr);
}

// Collective. Returns "" on every rank if all ranks can use the backend. Otherwise returns a reason on every rank.
std::string why_not(const std::string& name, const mpi::Runtime& runtime, int hosts) {
  if (is_simulated(name)) return runtime.size() > 1 ? "one process simulates all ranks: start it without a launcher" : "";
  const Backend& backend = backend_named(name);
  const Availability found = probe(backend);
  const auto without = mpi::ranks_where(runtime.world(), !found.works);
  if (!without.empty()) return found.works ? fmt::format("not available on rank {}", without[0]) : found.detail;
  if (backend.open && backend.one_host && hosts > 1)
    return fmt::format("it connects the ranks of one host, and these are on {}", hosts);
  if (backend.open) return "";
  if (runtime.size() > 1) return "its ranks are threads of one process: start it without a launcher, with --ranks N";
  return "";
}

void require_hosts(const Sweep& sweep, int processes) {
  const auto hosts = std::ssize(sweep.wanted.hosts);
  for (const std::string& name : sweep.backends)
    if (hosts > 0 && !is_simulated(name) && backend_named(name).open && hosts != processes)
      usage_error("the hosts have another number of ranks",
                  fmt::format("--hosts has {} ranks; {} processes run {}", hosts, processes, name),
                  fmt::format("start {} ranks with mpirun, or give hosts with {} ranks", hosts, processes));
}

void require_groups(const Sweep& sweep, const Topology& topology) {
  for (const std::string& name : sweep.backends) {
    if (is_simulated(name)) continue;  // simulated.cpp knows the hosts of its machine
    const bool by_launcher = backend_named(name).open != nullptr;
    const std::vector<int>& real = by_launcher ? topology.host_of : std::vector<int>();
    sweep.how.groups.require_equal(by_launcher ? static_cast<int>(topology.host_of.size()) : sweep.threads,
                                   sweep.wanted.hosts.empty() ? real : sweep.wanted.hosts);
  }
}

BenchWorld stage_of(const Communicator& group) {
  BenchWorld stage{group.backend(), group.size(), {}, group.hosts()};
  for (std::size_t what = 0; what < std::size(collective_names); ++what)
    stage.has_native.push_back(group.transport().has_native(static_cast<Collective>(what)));
  return stage;
}

Outcome measure_all(BenchTeam& team, Communicator& world, const Sweep& sweep, const Session& session) {
  WantedCases wanted = sweep.wanted;
  const Groups& groups = sweep.how.groups;
  Communicator part{nullptr};
  if (groups.number > 1) {
    if (!wanted.hosts.empty()) world.pretend_hosts(std::exchange(wanted.hosts, {}));  // its groups inherit their hosts
    part = world.split(groups.of(world.rank(), world.size()), world.rank());
  }
  Communicator& group = part ? part : world;
  BenchWorld stage = stage_of(group);
  if (part) stage.all = groups.among(world.size(), world.hosts());
  const CaseGrid grid = make_grid(wanted, stage);
  Outcome outcome{{}, static_cast<std::int64_t>(grid.cases.size())};
  const bool speaks = team.rank() == 0;
  if (speaks)
    for (const std::string& line : grid.skipped) say_skipped(line);
  // Ranks that are threads share the guard of their process.
  const bool has_guard = speaks || !backend_named(world.backend()).ranks_are_threads;
  std::optional<Progress> progress;
  if (speaks)
    progress.emplace("bench " + world.backend(), outcome.rows, world.clock(), Progress::screen_at(session.log_level));
  Bench bench(team, group, sweep.how);
  if (speaks) outcome.series.resize(grid.cases.size());
  std::int64_t turn = 0;
  for (const std::size_t c : turns_of(grid.cases, sweep.order, sweep.together)) {
    const BenchCase& row = grid.cases[c];
    const std::string words = fmt::format("{} {} {}", name_of(row.what), row.algorithm, human_bytes(row.bytes()));
    if (has_guard) session.runtime->now(fmt::format("row {} of {}: {}", turn + 1, outcome.rows, words));
    if (progress) progress->update(turn, words);
    Series series = bench.measure(row);
    if (bench.stopped()) {
      outcome.stopped = true;
      std::erase_if(outcome.series, [&](const Series& s) {
        return s.slowest.empty() || (sweep.together && s.row.question() == row.question());
      });
      break;
    }
    series.turn = turn++;
    if (speaks) outcome.series[c] = std::move(series);
  }
  return outcome;
}

Outcome on_threads(const Sweep& sweep, const Session& session) {
  ThreadWorld world(sweep.threads);
  Crew crew(sweep.threads, session.clock);
  Outcome outcome;
  std::vector<std::exception_ptr> troubles(static_cast<std::size_t>(sweep.threads));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < sweep.threads; ++rank)
      threads.emplace_back([&, rank] {
        ThreadTeam team(crew, rank);
        try {
          Communicator communicator = open_world(world.transport(rank), session.clock);
          communicator.go_by(std::make_shared<Selector>(sweep.tuning, sweep.machine));
          Outcome mine = measure_all(team, communicator, sweep, session);
          if (rank == 0) outcome = std::move(mine);
        } catch (...) {
          troubles[static_cast<std::size_t>(rank)] = std::current_exception();
          crew.broken = true;  // so that no other thread waits for this one
        }
      });
  }
  for (const auto& trouble : troubles)
    if (trouble) std::rethrow_exception(trouble);
  return outcome;
}

// Adds the rows of one backend to the total, and returns the backend's series.
std::vector<Series> take(Outcome& all, Outcome one) {
  for (Series& series : one.series) series.turn += all.rows;
  all.rows += one.rows;
  all.stopped = one.stopped;
  return std::move(one.series);
}

}  // namespace

bool Outcome::simulated() const {
  return !series.empty() && std::ranges::all_of(series, [](const Series& s) { return is_simulated(s.row.backend); });
}

Outcome run(const Sweep& sweep, const Session& session) {
  const mpi::Runtime& runtime = *session.runtime;
  require_hosts(sweep, runtime.size());
  ProcessTeam team(runtime);
  Log log({.rank = runtime.rank(), .level = session.log_level});
  std::optional<MachineWatch> watch;  // simulated times do not depend on other programs
  if (!std::ranges::all_of(sweep.backends, is_simulated)) {
    watch.emplace(session);
    watch->warn(log);
  }
  Outcome all;
  std::vector<std::vector<Series>> by_backend(sweep.backends.size());
  const Topology topology = topology_of(runtime);
  require_groups(sweep, topology);
  const int hosts = topology.hosts();
  std::vector<std::size_t> usable;
  for (const std::size_t b : order_by_seed(sweep.backends.size(), sweep.order)) {
    const std::string why = why_not(sweep.backends[b], runtime, hosts);
    if (why.empty())
      usable.push_back(b);
    else
      all.unusable.push_back(fmt::format("{}: {}", sweep.backends[b], why));
  }
  if (runtime.rank() == 0 && !usable.empty())
    for (const std::string& line : all.unusable) say_skipped(line);
  for (const std::size_t b : usable) {
    const std::string& name = sweep.backends[b];
    if (is_simulated(name)) {
      by_backend[b] = take(all, simulate(sweep, name, session));
      if (all.stopped) break;
      continue;
    }
    const Backend& backend = backend_named(name);
    Outcome outcome;
    if (backend.open) {
      Communicator world = open_world(name, runtime, session.clock);
      world.go_by(std::make_shared<Selector>(
          selector_of_rank_0(runtime, {text_of(sweep.tuning), "rank 0's tuning table"},
                             {sweep.machine.signature.empty() ? "" : to_toml(sweep.machine), "rank 0's machine file"})));
      if (sweep.staged_up_to >= 0) world.transport().stage_up_to(sweep.staged_up_to);
      outcome = measure_all(team, world, sweep, session);
    } else {
      outcome = on_threads(sweep, session);
    }
    by_backend[b] = take(all, std::move(outcome));
    if (all.stopped) break;
  }
  for (std::vector<Series>& series : by_backend) std::ranges::move(series, std::back_inserter(all.series));
  if (watch) {
    all.others = watch->finish(log);
    all.busy = watch->warned();
  }
  return all;
}

Error nothing_measured(const Outcome& outcome, int processes) {
  if (outcome.unusable.empty())
    return {Exit::usage, "nothing remains to be measured", "every combination was skipped",
            fmt::format("to list algorithms: {} show all_reduce", program())};
  std::vector<std::string> works;
  for (const Backend& backend : all_backends())
    if (backend.preference > 0 && joins_here(backend)) works.emplace_back(backend.name);
  return {Exit::usage, "no requested backend can be used", join(outcome.unusable, "; "),
          fmt::format("these work here: {}; {} says why others do not", join(works, ", "), command_on(processes, "info"))};
}

}  // namespace chorale::bench
