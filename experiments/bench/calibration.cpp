#include "experiments/bench/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <chorale/algorithm.hpp>
#include "collectives/backends/backends.hpp"
#include "collectives/backends/near/post.hpp"
#include "collectives/prediction/fit.hpp"
#include "collectives/schedule/chunking.hpp"
#include "experiments/bench/barrier_time.hpp"
#include "experiments/bench/compute_rates.hpp"
#include "experiments/bench/prediction_errors.hpp"
#include "experiments/bench/staging.hpp"
#include "experiments/common/each.hpp"
#include "experiments/common/statistics.hpp"
#include "experiments/train/product_peak.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/machine_load.hpp"
#include "src/base/progress.hpp"
#include "src/base/text.hpp"
#include "src/base/topology.hpp"
#include "src/math/peak.hpp"

namespace chorale::bench {
namespace {

constexpr double most_stalled = 4;
constexpr std::size_t fewest_barriers = 10;  // with fewer barrier times, the usual barrier time is unknown
constexpr DType peak_types[] = {DType::f32, DType::bf16};

// The hosts and machines of the ranks. Emulated hosts run on one kernel and share the cores of one machine.
prediction::Site site_of(const mpi::Runtime& runtime) {
  const std::int64_t kernel = static_cast<std::int64_t>(std::hash<std::string>{}(kernel_id()));
  prediction::Site site{topology_of(runtime).host_of, {}, online_cores()};
  std::vector<std::int64_t> seen;
  for (const std::int64_t one : mpi::all_gather(runtime.world(), kernel)) {
    if (!std::ranges::count(seen, one)) seen.push_back(one);
    site.machine_of.push_back(static_cast<int>(std::ranges::find(seen, one) - seen.begin()));
  }
  return site;
}

int hosts_of(const prediction::Site& site) { return std::ranges::max(site.host_of) + 1; }

void refuse_too_many_ranks(const Sweep& sweep, int processes) {
  for (const std::string& name : sweep.backends)
    if (const int ranks = backend_named(name).ranks_are_threads ? sweep.threads : processes; ranks > prediction::most_ranks)
      usage_error(fmt::format("prices are fitted to at most {} ranks", prediction::most_ranks),
                  fmt::format("{} has {} ranks", name, ranks),
                  "start fewer ranks: auto uses their prices for larger groups too");
}

// Makes the measurements that need only rank 0.
void measure_alone(Machine& machine, const Session& session) {
  const std::string now = iso_time(session.clock.wall_seconds());
  const int cores = online_cores();
  const MachineReading before = read_machine(session.clock);
  for (const DType dtype : peak_types) {
    const PeakKey key = train::host_peak_key(dtype, cores);
    std::erase_if(machine.peaks, [&](const auto& row) { return row.first == key; });
    machine.peaks.push_back({key, {product_peak(dtype, cores, {}), now, false}});
    fmt::print("{:<10}{:.0f} GFLOP/s by {}\n", fmt::format("peak {}", key.type), machine.peaks.back().second.flops / 1e9,
               key.processor);
  }
  const bool busy = work_between(before, read_machine(session.clock), cores).busy();
  for (auto& [key, peak] : machine.peaks) peak.busy |= busy && peak.measured == now;
  machine.sums.clear();
  for (const DType dtype : all_dtypes) {
    machine.sums.push_back(measure_sum(dtype, session.clock));
    machine.sums.back().measured = now;
  }
  fmt::print("{:<10}{:.1f} GB/s of f32 by one core\n", "sums", machine.sums.front().rate / 1e9);
}

// Returns ring all-gathers with the message lengths of real programs. The times of these all-gathers show the length above
// which a message waits for its receiver.
Sweep of_message_lengths(const Sweep& sweep, int ranks) {
  Sweep lengths = sweep;
  lengths.wanted.ops = {"all_gather"};
  lengths.wanted.algorithms = {"ring"};
  lengths.wanted.in_place = "no";
  lengths.wanted.begin = ranks << 10;
  lengths.wanted.end = ranks << 16;
  lengths.wanted.factor = 2;
  std::erase_if(lengths.backends, [](const std::string& name) { return backend_named(name).maps_memory; });
  return lengths;
}

void print(const Level& level) {
  const auto price = [&](const char* key) { return level.prices.contains(key) ? level.prices.at(key) : std::vector{0.0}; };
  fmt::print("{:<10}{} {}: latency {}, {}; half of its {} calls are predicted {}, 95 of 100 {}\n", level.backend,
             level.ranks, level.span == "network" ? fmt::format("ranks between {} hosts", level.hosts) : "ranks of a host",
             human_seconds(price("latency")[0]),
             level.span == "network" ? fmt::format("link {:.3g} MB/s", price("link")[0] / 1e6)
                                     : fmt::format("memory {:.3g} GB/s a core", price("touch").back() / 1e9),
             level.rows, within(level.error), within(level.error_95));
  if (level.staged_bytes >= 0)
    fmt::print("{:<10}{} ranks of a host: messages of ordinary memory are staged up to {}\n", level.backend, level.ranks,
               human_bytes(level.staged_bytes));
}

// Returns the prices that need not be fitted. A run on several hosts takes the prices within a host from an earlier run on
// one host. If shm+ucx was not measured on one host, the prices of shm are used (Backend::on_a_host). shm+ucx sends messages
// up to a fixed length together with their notification. So such a message has the price of a step, without an additional
// copy.
prediction::Known known_prices(const Machine& machine, const std::string& backend, const prediction::Site& site) {
  prediction::Known known;
  const char* const on_a_host = backend_named(backend).on_a_host;
  const bool is_near = on_a_host != nullptr;
  if (is_near) known.eager_bytes = near::carried_bytes;
  if (hosts_of(site) == 1 || machine.signature != machine_signature()) return known;
  const int on_a_machine = static_cast<int>(std::ranges::count(site.machine_of, 0));
  std::vector<std::string> names{backend};
  if (is_near) names.emplace_back(on_a_host);
  for (const std::string& name : names) {
    const Level* const level = prediction::nearest(machine, name, "host", on_a_machine, 1);
    if (!level || level->hosts > 1) continue;
    known.within = prediction::prices_of(*level);
    if (name != backend) {
      known.within->message = known.within->step;
      known.within->copy = 0;
    }
    if (is_near) known.within->eager_bytes = near::carried_bytes;
    break;
  }
  return known;
}

void print(const ComputeRates& rates) {
  fmt::print(
      "{:<10} products {:.3g} GFLOP/s, attention {:.3g} GFLOP/s, other kernels {:.3g} GB/s, updates {:.3g} GB/s by each "
      "core\n",
      fmt::format("steps {}", rates.type), rates.product / 1e9, rates.attention / 1e9, rates.elements / 1e9,
      rates.update / 1e9);
}

// Returns the longest messages that are best staged, by backend. Adds to `outcome` whether a signal stopped the measurement
// and whether other programs ran.
std::map<std::string, std::int64_t> measure_staged_bytes_of_all(const Sweep& sweep, const Session& session,
                                                                Outcome& outcome) {
  std::map<std::string, std::int64_t> found;
  for (const std::string& backend : sweep.backends) {
    if (outcome.stopped) break;
    const StagedBytes measured = measure_staged_bytes(backend, sweep, session);
    found[backend] = measured.bytes;
    outcome.stopped = measured.stopped;
    if (outcome.busy.empty()) outcome.busy = measured.busy;
  }
  return found;
}

auto run_of(const Level& level) { return std::tuple(level.backend, level.ranks, level.hosts); }

// Replaces the known rows whose keys are among those of the new rows.
template <class Row, class Key>
void replace_rows(std::vector<Row>& known, const std::vector<Row>& found, Key key) {
  for (const Row& row : found) std::erase_if(known, [&](const Row& old) { return key(old) == key(row); });
  known.insert(known.end(), found.begin(), found.end());
}

}  // namespace

SumRate measure_sum(DType dtype, Clock& clock) {
  constexpr std::int64_t bytes = 16 << 10;  // three vectors of this size fit into any L2 cache
  constexpr int samples = 15, repetitions = 200;
  std::vector<std::byte> a(bytes), b(bytes), out(bytes);
  const void* const sources[] = {a.data(), b.data()};
  std::vector<double> rates;
  for (int sample = 0; sample < samples; ++sample) {
    const double start = clock.seconds();
    for (int i = 0; i < repetitions; ++i) reduce(Redop::sum, dtype, out.data(), sources, bytes / size_of(dtype));
    rates.push_back(repetitions * static_cast<double>(bytes) / (clock.seconds() - start));
  }
  std::ranges::sort(rates);
  const double median = median_of(rates);
  return {name_of(dtype), median, (rates[3 * samples / 4] - rates[samples / 4]) / 2 / median, ""};
}

std::vector<Level> levels_of(const std::vector<Series>& series, const prediction::Site& site, const Machine& known,
                             const std::function<bool()>& tick) {
  const std::string& backend = series.at(0).row.backend;
  const bool can_compare = hosts_of(site) == 1 && !site.crowded() && series.size() >= fewest_barriers;
  const double usual = usual_barrier(each(series, &Series::barrier));
  std::vector<prediction::Timed> rows;
  for (const Series& one : series) {
    const Algorithm* const algorithm = find_algorithm(one.row.what, one.row.algorithm);
    if (!algorithm || one.row.what == Collective::barrier || one.wrong > 0 || one.slowest.empty()) continue;
    if (can_compare && !is_usual(one.barrier, usual)) continue;
    require(one.row.dtype == DType::f32, "prices are fitted to calls with f32, not {}", name_of(one.row.dtype));
    std::vector<Schedule> ranks = plan_all_ranks(*algorithm, one.row.problem());
    for (Schedule& rank : ranks) rank = cut_into_chunks(rank, one.row.chunks);
    const Summary time = summarize(one.slowest);
    if (time.median > most_stalled * time.p5) continue;  // other programs delayed most of these calls
    rows.push_back({std::move(ranks), time.median});
  }
  if (rows.empty()) return {};
  const auto fitted = prediction::fit(rows, size_of(DType::f32), backend_named(backend).maps_memory, site, tick,
                                      known_prices(known, backend, site));
  if (!fitted) return {};
  Level level{.backend = backend, .ranks = series[0].row.ranks, .hosts = hosts_of(site)};
  if (can_compare) level.barrier = usual;
  level.shared_cores = level.hosts > 1 && std::ranges::max(site.machine_of) == 0;
  level.rows = static_cast<int>(rows.size());
  level.error = fitted->error;
  level.error_95 = fitted->error_95;
  Level between = level;
  between.span = "network";
  between.spread = fitted->spread_between;
  level.spread = fitted->spread;
  set_prices(level, fitted->within);
  set_prices(between, fitted->between);
  return level.hosts > 1 ? std::vector{level, between} : std::vector{level};
}

bool calibrate(const Sweep& sweep, const Session& session, const std::filesystem::path& file) {
  const mpi::Runtime& runtime = *session.runtime;
  const prediction::Site site = site_of(runtime);
  const bool speaks = runtime.rank() == 0;
  refuse_too_many_ranks(sweep, runtime.size());
  if (speaks) own_machine(file);  // a file that cannot store the prices is refused before the measurements
  Machine found{machine_signature(), online_cores(), {}, {}, {}};
  mpi::sleep_until_all(runtime.world(), session.clock);
  runtime.now("the peaks and sums of rank 0");
  if (speaks) measure_alone(found, session);
  mpi::sleep_until_all(runtime.world(), session.clock);
  for (const DType dtype : peak_types) {
    runtime.now(fmt::format("the kernels of a step in {}", name_of(dtype)));
    found.computes.push_back(measure_compute(dtype, session));
    found.computes.back().measured = iso_time(session.clock.wall_seconds());
    if (speaks) print(found.computes.back());
  }
  Outcome outcome = bench::run(sweep, session);
  if (outcome.rows == 0) throw nothing_measured(outcome, runtime.size());
  if (const Sweep lengths = of_message_lengths(sweep, runtime.size()); !lengths.backends.empty() && !outcome.stopped) {
    Outcome more = bench::run(lengths, session);
    std::ranges::move(more.series, std::back_inserter(outcome.series));
    outcome.stopped = more.stopped;
  }
  const std::map<std::string, std::int64_t> staged_bytes = measure_staged_bytes_of_all(sweep, session, outcome);
  bool complete = !outcome.stopped;
  runtime.now("the fit of the prices");
  if (speaks && complete) {
    Progress progress = session.progress("fit", std::ssize(sweep.backends));
    for (std::size_t b = 0; b < sweep.backends.size() && complete; ++b) {
      std::vector<Series> own;
      for (const Series& series : outcome.series)
        if (series.row.backend == sweep.backends[b]) own.push_back(series);
      if (own.empty()) continue;
      const auto tick = [&] {
        progress.update(static_cast<std::int64_t>(b), sweep.backends[b]);
        if (Flight* const flight = runtime.flight()) flight->heartbeat();
        return complete = complete && !(sweep.how.told_to_stop && sweep.how.told_to_stop());
      };
      const bool threads = backend_named(sweep.backends[b]).ranks_are_threads;
      const prediction::Site here = threads ? prediction::Site::one_host(own[0].row.ranks, online_cores()) : site;
      for (Level& level : levels_of(own, here, sweep.machine, tick)) {
        level.measured = iso_time(session.clock.wall_seconds());
        level.busy = !outcome.busy.empty();
        level.staged_bytes = staged_bytes.at(level.backend);
        found.levels.push_back(level);
      }
    }
  }
  if (speaks && complete) {
    for (const Level& level : found.levels) print(level);
    for (ComputeRates& rates : found.computes) rates.busy = !outcome.busy.empty();
    const std::string why_not = change_machine(file, [&](Machine& known) {
      replace_rows(known.peaks, found.peaks, [](const auto& peak) { return peak.first; });
      replace_rows(known.levels, found.levels, run_of);
      replace_rows(known.computes, found.computes, [](const auto& rates) { return std::tuple(rates.type, rates.ranks); });
      known.sums = found.sums;
      known.cores = found.cores;
    });
    if (!why_not.empty())
      usage_error("the machine file cannot be written", fmt::format("{}: {}", file.string(), why_not),
                  "name another place with --machine FILE");
    fmt::print("written to {}{}\n", escape_control(file.string()),
               outcome.busy.empty() ? "" : fmt::format(", measured on a busy machine: {}", outcome.busy));
    std::fflush(stdout);
  }
  mpi::sleep_until_all(runtime.world(), session.clock);
  // Only rank 0 fits the prices, so only rank 0 knows whether the fit was stopped.
  return mpi::ranks_where(runtime.world(), !complete).empty();
}

}  // namespace chorale::bench
