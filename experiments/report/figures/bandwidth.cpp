// Shows latency and bandwidth by vector size, for each question (an operation with its conditions, bench_series.hpp). Each
// series, such as a backend and an algorithm, has a line. Dashed lines show the cost model, and the time of the same loads
// and stores without waits. Bandwidth is the vector's bytes divided by the time. If there are many series, only the best
// series are named.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "experiments/common/each.hpp"
#include "experiments/report/bench_series.hpp"
#include "experiments/report/figures/figures.hpp"

namespace chorale::report {
namespace {

constexpr std::size_t most_named = 6;

using BandwidthSeries = std::vector<const BenchRow*>;  // rows of one name, sorted by size

// The series of a question, the best first. At each size, the time of a series is divided by the shortest time of any
// series. The score of a series is the geometric mean of these ratios.
std::vector<BandwidthSeries> series_of(const std::vector<BenchRow>& rows, const std::string& question) {
  std::vector<const BenchRow*> own;
  std::map<double, double> best;
  for (const BenchRow& row : rows) {
    if (row.question != question || row.bytes <= 0 || !(row.median > 0)) continue;
    const auto [at, first] = best.emplace(row.bytes, row.median);
    at->second = std::min(at->second, row.median);
    own.push_back(&row);
  }
  std::vector<BandwidthSeries> all = grouped(own, &BenchRow::name);
  const auto behind = [&](const BandwidthSeries& series) {
    double sum = 0;
    for (const BenchRow* row : series) sum += std::log(row->median / best[row->bytes]);
    return sum / static_cast<double>(series.size());
  };
  for (BandwidthSeries& series : all) std::ranges::sort(series, {}, &BenchRow::bytes);
  std::ranges::stable_sort(all, {}, behind);
  return all;
}

LineChart chart_of(const std::string& question, const std::vector<BandwidthSeries>& all, bool bandwidth) {
  using enum Scale::Spacing;
  LineChart chart{question + (bandwidth ? ": bandwidth" : ": latency"),
                  fmt::format("{} of {} by vector size, both logarithmic, one line per backend and algorithm.",
                              bandwidth ? "Bandwidth" : "Time", question),
                  {.name = "vector size", .unit = Unit::bytes, .spacing = logarithmic},
                  {.name = bandwidth ? "bandwidth" : "time",
                   .unit = bandwidth ? Unit::bytes_per_second : Unit::seconds,
                   .spacing = logarithmic},
                  {}};
  const auto value = [&](const BenchRow& row, double seconds) {
    return bandwidth && seconds > 0 ? row.bytes / seconds : seconds;
  };
  for (std::size_t s = 0; s < all.size(); ++s) {
    Line line{all[s][0]->name, {}, s < most_named ? Line::Kind::series : Line::Kind::other};
    for (const BenchRow* row : all[s]) {
      const double low = value(*row, row->ci_low), high = value(*row, row->ci_high);
      line.points.push_back({row->bytes, value(*row, row->median), std::min(low, high), std::max(low, high)});
    }
    chart.lines.push_back(std::move(line));
  }
  std::set<double> sizes;
  for (const Line& line : chart.lines)
    for (const Point& point : line.points) sizes.insert(point.x);
  chart.x.marks.assign(sizes.begin(), sizes.end());
  const BandwidthSeries& best = all.front();
  Line model{"cost model of " + best[0]->name, {}, Line::Kind::model};
  for (const BenchRow* row : best) model.points.push_back({row->bytes, value(*row, row->predicted)});
  std::map<double, double> fastest;  // key: vector size; value: time in seconds of the loads and stores without waits
  for (const BandwidthSeries& series : all)
    for (const BenchRow* row : series)
      if (row->ceiling > 0)
        fastest[row->bytes] = std::min(fastest.emplace(row->bytes, row->ceiling).first->second, row->ceiling);
  Line ceiling{"memory ceiling", {}, Line::Kind::limit};
  for (const auto& [bytes, seconds] : fastest) ceiling.points.push_back({bytes, bandwidth ? bytes / seconds : seconds});
  for (Line* limit : {&model, &ceiling}) {
    std::erase_if(limit->points, [](const Point& point) { return !(point.y > 0); });
    if (!limit->points.empty()) chart.lines.push_back(std::move(*limit));
  }
  return chart;
}

}  // namespace

std::optional<Figure> bandwidth(const RecordSet& records) {
  std::vector<BenchRow> rows = bench_rows(records);
  std::erase_if(rows, [](const BenchRow& row) { return row.ranks < 2; });  // one rank sends nothing
  Figure figure{.numbers = TextTable({"operation", "series", "bytes", "median", spreads_of(rows), "bandwidth", "cost model",
                                      "memory ceiling"})};
  for (const std::string& question : questions_of(rows)) {
    const std::vector<BandwidthSeries> all = series_of(rows, question);
    if (all.empty()) continue;
    for (const BandwidthSeries& series : all)
      for (const BenchRow* row : series)
        figure.numbers.add({question, row->name, fmt::format("{:.0f}", row->bytes), quantity(row->median, Unit::seconds),
                            quantity(row->ci_low, Unit::seconds) + " to " + quantity(row->ci_high, Unit::seconds),
                            quantity(row->bytes / row->median, Unit::bytes_per_second),
                            quantity(row->predicted, Unit::seconds), quantity(row->ceiling, Unit::seconds)});
    for (const bool as_bandwidth : {false, true}) figure.charts.push_back(drawing_of(chart_of(question, all, as_bandwidth)));
    const auto widest = [](const BenchRow* a, const BenchRow* b) { return a->bytes / a->median < b->bytes / b->median; };
    const BenchRow* top = nullptr;
    for (const BandwidthSeries& series : all) {
      const BenchRow* own = *std::max_element(series.begin(), series.end(), widest);
      if (!top || widest(top, own)) top = own;
    }
    if (figure.finding.empty())
      figure.finding =
          fmt::format("{} reaches {} with {} at {}{}.", question, quantity(top->bytes / top->median, Unit::bytes_per_second),
                      top->name, quantity(top->bytes, Unit::bytes),
                      top->ceiling > 0 ? fmt::format(", {:.0f} % of the speed of its loads and stores without waits",
                                                     100 * top->ceiling / top->median)
                                       : "");
  }
  if (figure.charts.empty()) return {};
  return figure;
}

}  // namespace chorale::report
