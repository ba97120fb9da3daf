#include "experiments/bench/results.hpp"

#include <chorale/algorithm.hpp>
#include "collectives/backends/backends.hpp"
#include "experiments/common/simulated.hpp"
#include "experiments/common/statistics.hpp"
#include "parallel/prediction/cpu_step.hpp"
#include "src/base/host.hpp"

namespace chorale::bench {
namespace {

struct SampleRow {
  std::int32_t series, repetition, rank;
  double time;
  static auto columns() {
    return std::tuple{column("series", &SampleRow::series, "1", "row of /series"),
                      column("repetition", &SampleRow::repetition, "1", "call of the series"),
                      column("rank", &SampleRow::rank, "1", "rank that measured the time"),
                      column("time", &SampleRow::time, "s", "time of the call on this rank")};
  }
};

// Converts −1, which marks an unknown measurement, to NaN.
double or_unknown(double value) { return value < 0 ? SeriesRow::unknown : value; }

template <class Number>
std::optional<Number> or_absent(Number value) {
  return value < 0 ? std::nullopt : std::optional(value);
}

constexpr int most_ranks_predicted = 64;  // computing a prediction takes time quadratic in the number of ranks

void predict(SeriesRow& row, const Series& series, const Selector& selector) {
  const BenchCase& asked = series.row;
  if (is_simulated(asked.backend)) {
    row.predicted = or_unknown(series.closed_form);
    row.calibrated = 1;
    row.bytes_predicted = static_cast<std::int64_t>(series.bytes_sent);
    return;
  }
  const Problem whole = asked.groups() > 1 ? asked.all.whole(asked.problem()) : asked.problem();
  if (whole.size > most_ranks_predicted) return;
  const Choice& ran = series.choice;
  row.predicted =
      or_unknown(selector.predict(asked.backend, ran.algorithm, ran.chunks, asked.problem(), asked.dtype, asked.all));
  row.calibrated = selector.is_calibrated(asked.backend, whole);
  const ComputeRates* const rates = rates_of(selector.machine(), DType::f32, whole.size);
  if (row.products > 0 && rates) {
    const double seconds = product_flops / rates->product;
    row.both_predicted = or_unknown(selector.predict(asked.backend, ran.algorithm, ran.chunks, asked.problem(), asked.dtype,
                                                     asked.all, {row.products, seconds}));
  }
  row.usual_barrier = or_unknown(selector.usual_barrier(asked.backend, whole));
  if (const Algorithm* algorithm = find_algorithm(asked.what, ran.algorithm)) {
    row.bytes_predicted = 0;
    for (const Schedule& schedule : plan_all_ranks(*algorithm, asked.problem()))
      *row.bytes_predicted += schedule.elements_sent() * size_of(asked.dtype) * asked.groups();
  }
}

void add_bandwidths(SeriesRow& row, const BenchCase& asked) {
  if (asked.what == Collective::barrier) return;
  if (asked.ranks == 1) {
    row.bus_bandwidth = 0;  // one rank sends nothing: no bytes cross a link
  } else if (row.median > 0) {
    row.algorithm_bandwidth = static_cast<double>(row.bytes) / row.median;
    row.bus_bandwidth = row.algorithm_bandwidth * asked.bus_factor();
  }
}

// Whether a core has to run more than one of the row's ranks.
bool is_oversubscribed(const BenchCase& asked, bool crowded) {
  if (is_simulated(asked.backend)) return false;
  return backend_named(asked.backend).ranks_are_threads
             ? asked.ranks * asked.groups() > static_cast<int>(allowed_cpus().size())
             : crowded;
}

}  // namespace

SeriesRow row_of(const Series& series, const Conditions& conditions, const Selector& selector) {
  const BenchCase& asked = series.row;
  const Summary s = summarize(series.slowest);
  SeriesRow row{.op = asked.what,
                .backend = asked.backend,
                .algorithm = asked.algorithm,
                .chosen = series.choice.algorithm,
                .dtype = asked.dtype,
                .redop = reduces(asked.what) ? redop_names[static_cast<std::size_t>(asked.op)] : "none",
                .in_place = asked.in_place,
                .cache = conditions.cache,
                .memory = conditions.memory,
                .oversubscribed = is_oversubscribed(asked, conditions.crowded),
                .chunks = series.choice.chunks,
                .root = has_root(asked.what) ? asked.root : -1,
                .ranks = asked.ranks,
                .hosts = number_of_hosts(asked.hosts),
                .count = asked.count,
                .bytes = asked.bytes(),
                .repetitions = std::ssize(series.slowest),
                .turn = series.turn,
                .wrong = or_absent(series.wrong),
                .bytes_sent = or_absent(series.bytes_sent),
                .median = s.median,
                .ci_low = s.ci_low,
                .ci_high = s.ci_high,
                .p5 = s.p5,
                .p95 = s.p95,
                .ceiling = or_unknown(series.ceiling),
                .barrier = or_unknown(series.barrier),
                .p99 = s.p99,
                .max = s.max,
                .groups = asked.groups(),
                .products = series.beside.products,
                .products_alone = or_unknown(series.beside.alone),
                .call_beside = or_unknown(series.beside.call),
                .products_beside = or_unknown(series.beside.slowed),
                .both = or_unknown(series.beside.both),
                .strided = conditions.strided && asked.groups() > 1};
  row.hidden = hidden_share(row.median, row.products_alone, row.both);
  add_bandwidths(row, asked);
  predict(row, series, selector);
  return row;
}

void write(Recorder& recorder, const Rows& rows, const std::vector<Series>& series) {
  Table& all = recorder.table<SeriesRow>({.group = "series", .rows = "row"});
  Table& samples = recorder.table<SampleRow>({.group = "samples", .rows = "sample"});
  for (std::size_t s = 0; s < rows.size(); ++s) {
    recorder.append(all, rows[s]);
    const auto& times = series[s].times;
    for (std::size_t rank = 0; rank < times.size(); ++rank)
      for (std::size_t i = 0; i < times[rank].size(); ++i)
        recorder.append(samples, SampleRow{static_cast<std::int32_t>(s), static_cast<std::int32_t>(i),
                                           static_cast<std::int32_t>(rank), times[rank][i]});
  }
}

}  // namespace chorale::bench
