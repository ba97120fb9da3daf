#include "experiments/bench/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "collectives/backends/backends.hpp"
#include "collectives/schedule/algorithms.hpp"
#include "experiments/bench/values.hpp"
#include "experiments/common/simulated.hpp"
#include "experiments/common/statistics.hpp"

namespace chorale::bench {
namespace {

using Json = nlohmann::ordered_json;

Json five_digits(double seconds) { return seconds < 0 ? Json() : Json(rounded(seconds)); }

template <class Number>
Json known(Number value) {
  return value < 0 ? Json() : Json(value);
}

using Names = std::vector<std::string>;

std::uint8_t index(const Names& names, const std::string& name) {
  return static_cast<std::uint8_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

Names backend_names() {
  Names names;
  for (const Backend& backend : all_backends()) names.emplace_back(backend.name);
  names = with_simulated(std::move(names));
  names.emplace_back("simulated");  // on another machine, which the root names
  return names;
}

const Names redops{"sum", "prod", "min", "max", "avg", "none"};

struct SeriesRow {
  std::uint8_t op, backend, algorithm, chosen, dtype, redop, in_place, cache, memory, oversubscribed, calibrated;
  std::int64_t chunks, root, ranks, hosts, count, bytes, repetitions, turn, wrong, bytes_predicted;
  double bytes_sent, median, ci_low, ci_high, p5, p95, predicted, ceiling;

  static auto columns() {
    using Row = SeriesRow;
    const Names ops(std::begin(collective_names), std::end(collective_names));
    return std::tuple{
        column("op", &Row::op, "", "operation", ops),
        column("backend", &Row::backend, "", "backend that carried the calls", backend_names()),
        column("algorithm", &Row::algorithm, "", "algorithm as requested", algorithm_names()),
        column("chosen", &Row::chosen, "", "algorithm that ran", algorithm_names()),
        column("dtype", &Row::dtype, "", "element type", dtype_names()),
        column("redop", &Row::redop, "", "operator", redops),
        column("in_place", &Row::in_place, "", "input and output are one buffer", {"no", "yes"}),
        column("cache", &Row::cache, "", "whether buffers were in the cache", {"hot", "cold"}),
        column("memory", &Row::memory, "", "memory that held the buffers",
               Names(std::begin(where_names), std::end(where_names))),
        column("oversubscribed", &Row::oversubscribed, "", "more ranks than cores on a host", {"no", "yes"}),
        column("calibrated", &Row::calibrated, "", "predicted by prices measured on this machine", {"no", "yes"}),
        column("chunks", &Row::chunks, "1", "chunks that the schedule is cut into"),
        column("root", &Row::root, "1", "root; -1: none"),
        column("ranks", &Row::ranks, "1", "ranks in the group"),
        column("hosts", &Row::hosts, "1", "hosts of these ranks, real or pretended (--hosts)"),
        column("count", &Row::count, "1", "elements of the whole vector"),
        column("bytes", &Row::bytes, "byte", "size of the whole vector"),
        column("repetitions", &Row::repetitions, "1", "timed calls"),
        column("turn", &Row::turn, "1", "position in the order in which the rows were measured"),
        column("wrong", &Row::wrong, "1", "wrong elements in the checked calls, or -1"),
        column("bytes_predicted", &Row::bytes_predicted, "byte", "sent by all ranks in a call, by the schedule, or -1"),
        column("bytes_sent", &Row::bytes_sent, "byte", "sent by all ranks in a call, as counted, or -1"),
        column("median", &Row::median, "s", "median over the repetitions of the slowest rank's time"),
        column("ci_low", &Row::ci_low, "s", "95 % interval of the median, lower end"),
        column("ci_high", &Row::ci_high, "s", "95 % interval of the median, upper end"),
        column("p5", &Row::p5, "s", "5 % of the repetitions were faster"),
        column("p95", &Row::p95, "s", "5 % of the repetitions were slower"),
        column("predicted", &Row::predicted, "s", "time by the cost model"),
        column("ceiling", &Row::ceiling, "s", "time of the same loads and stores without waits"),
    };
  }
};

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

std::string redop_of(const Case& row) { return reduces(row.what) ? redop_names[static_cast<std::size_t>(row.op)] : "none"; }

double or_absent(double value) { return value < 0 ? std::numeric_limits<double>::quiet_NaN() : value; }

std::uint8_t backend_of(const Case& row) {
  const Names names = backend_names();
  return std::min(index(names, row.backend), static_cast<std::uint8_t>(names.size() - 1));
}

SeriesRow row_of(const Result& result, const Conditions& conditions) {
  const Series& series = result.series;
  const Case& row = series.row;
  const Names algorithms = algorithm_names();
  const Summary s = summarize(series.slowest);
  return {.op = static_cast<std::uint8_t>(row.what),
          .backend = backend_of(row),
          .algorithm = index(algorithms, row.algorithm),
          .chosen = index(algorithms, series.choice.algorithm),
          .dtype = static_cast<std::uint8_t>(row.dtype),
          .redop = index(redops, redop_of(row)),
          .in_place = row.in_place,
          .cache = conditions.cold,
          .memory = static_cast<std::uint8_t>(conditions.memory),
          .oversubscribed = result.oversubscribed,
          .calibrated = result.calibrated,
          .chunks = series.choice.chunks,
          .root = has_root(row.what) ? row.root : -1,
          .ranks = row.ranks,
          .hosts = number_of_hosts(row.hosts),
          .count = row.count,
          .bytes = row.bytes(),
          .repetitions = static_cast<std::int64_t>(series.slowest.size()),
          .turn = series.turn,
          .wrong = series.wrong,
          .bytes_predicted = result.bytes_predicted,
          .bytes_sent = series.bytes_sent,
          .median = s.median,
          .ci_low = s.ci_low,
          .ci_high = s.ci_high,
          .p5 = s.p5,
          .p95 = s.p95,
          .predicted = or_absent(result.predicted),
          .ceiling = or_absent(series.ceiling)};
}

}  // namespace

Json describe(const Result& result, const Conditions& conditions) {
  const Series& series = result.series;
  const Case& row = series.row;
  const Summary s = summarize(series.slowest);
  const bool moves = row.what != Collective::barrier && row.ranks > 1 && s.median > 0;
  const bool stays = row.what != Collective::barrier && row.ranks == 1;  // one rank sends nothing: no bytes cross a link
  const double bandwidth = static_cast<double>(row.bytes()) / s.median;
  return {{"op", name_of(row.what)},
          {"backend", row.backend},
          {"algorithm", row.algorithm},
          {"chosen", series.choice.algorithm},
          {"chunks", series.choice.chunks},
          {"ranks", row.ranks},
          {"hosts", number_of_hosts(row.hosts)},
          {"dtype", name_of(row.dtype)},
          {"redop", redop_of(row)},
          {"root", has_root(row.what) ? row.root : -1},
          {"count", row.count},
          {"bytes", row.bytes()},
          {"in_place", row.in_place},
          {"seconds", five_digits(s.median)},
          {"seconds_ci_low", five_digits(s.ci_low)},
          {"seconds_ci_high", five_digits(s.ci_high)},
          {"seconds_p5", five_digits(s.p5)},
          {"seconds_p95", five_digits(s.p95)},
          {"algbw_bytes_per_s", moves ? Json(rounded(bandwidth)) : Json()},
          {"busbw_bytes_per_s", moves   ? Json(rounded(bandwidth * row.bus_factor()))
                                : stays ? Json(0.0)
                                        : Json()},
          {"wrong", known(series.wrong)},
          {"predicted_seconds", five_digits(result.predicted)},
          {"ceiling_seconds", five_digits(series.ceiling)},
          {"bytes_sent", known(std::llround(series.bytes_sent))},
          {"bytes_predicted", known(result.bytes_predicted)},
          {"repetitions", series.slowest.size()},
          {"launches", 1},
          {"memory", where_names[static_cast<std::size_t>(conditions.memory)]},
          {"cache", conditions.cold ? "cold" : "hot"},
          {"oversubscribed", result.oversubscribed ? 1 : 0},
          {"calibrated", result.calibrated ? 1 : 0},
          {"barrier_seconds", five_digits(series.beat)},
          {"usual_barrier_seconds", five_digits(result.usual_beat)}};
}

double rounded(double value) { return std::stod(fmt::format("{:.5g}", value)); }

void write(Recorder& recorder, const std::vector<Result>& results, const Conditions& conditions) {
  Table& all = recorder.table<SeriesRow>({.group = "series", .rows = "row"});
  Table& samples = recorder.table<SampleRow>({.group = "samples", .rows = "sample"});
  for (std::size_t s = 0; s < results.size(); ++s) {
    recorder.append(all, row_of(results[s], conditions));
    const auto& times = results[s].series.times;
    for (std::size_t rank = 0; rank < times.size(); ++rank)
      for (std::size_t i = 0; i < times[rank].size(); ++i)
        recorder.append(samples, SampleRow{static_cast<std::int32_t>(s), static_cast<std::int32_t>(i),
                                           static_cast<std::int32_t>(rank), times[rank][i]});
  }
}

}  // namespace chorale::bench
