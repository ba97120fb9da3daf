// The runs side by side: speed with its interval, and what it costs. A run that is not significantly slower than the fastest is marked ~.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/figures/figures.hpp"
#include "experiments/report/training.hpp"
#include "experiments/statistics.hpp"

namespace chorale::report {
namespace {

struct Row {
  std::string label;
  std::size_t runs = 0;
  std::vector<double> speed;
  Summary of_speed;
  double mfu = absent, peak = absent, sent = absent, bubble = absent, loss = absent;
};

Row row_of(const std::vector<const Run*>& runs) {
  Row row{.label = runs.front()->label, .runs = runs.size()};
  std::vector<double> mfu;
  for (const Run* run : runs) {
    const Group train = run->group("train");
    for (const double value : run->steady(train.numbers("tokens_per_s"))) row.speed.push_back(value);
    for (const double value : run->steady(train.numbers("mfu"))) mfu.push_back(value);
  }
  if (!row.speed.empty()) row.of_speed = summarize(row.speed);
  if (!mfu.empty()) row.mfu = summarize(mfu).median;
  const Run& first = *runs.front();
  row.peak = largest_peak(first), row.sent = bytes_per_step(first), row.bubble = bubble_share(first),
  row.loss = last_loss(first);
  return row;
}

std::string tokens(double a_second) { return quantity(a_second, Unit::plain, 4); }

std::string interval(const Summary& speed) { return tokens(speed.ci_low) + " to " + tokens(speed.ci_high); }

}  // namespace

std::optional<Figure> layouts(const RecordSet& records) {
  std::vector<Row> rows;
  for (const auto& runs : records.labelled("train"))
    if (Row row = row_of(runs); !row.speed.empty()) rows.push_back(std::move(row));
  if (rows.empty()) return {};
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.of_speed.median > b.of_speed.median; });

  Figure figure{.numbers = TextTable({"layout", "runs", "tokens/s", "95 % interval", "of the fastest", "MFU",
                                      "memory of a rank", "bytes a step", "bubble", "loss"}),
                .numbers_first = true};
  BarChart chart{.title = "Tokens a second",
                 .description = "A bar a layout, the fastest first, with the 95 % interval of its median.",
                 .axis = {.name = "tokens a second, median of the steps"},
                 .parts = {"tokens/s"}};
  std::size_t as_fast = 0;
  for (const Row& row : rows) {
    const double p = mann_whitney(rows.front().speed, row.speed), ratio = row.of_speed.median / rows.front().of_speed.median;
    const bool alike = &row != &rows.front() && p >= significant;
    as_fast += alike;
    figure.numbers.add({row.label, fmt::format("{}", row.runs), tokens(row.of_speed.median), interval(row.of_speed),
                        fmt::format("{}{:.2f}", alike ? "~ " : "", ratio), quantity(row.mfu, Unit::percent),
                        quantity(row.peak, Unit::bytes), quantity(row.sent, Unit::bytes),
                        quantity(row.bubble, Unit::percent), quantity(row.loss, Unit::plain, 4)});
    chart.bars.push_back(
        {(alike ? "~ " : "") + row.label, {row.of_speed.median}, row.of_speed.ci_low, row.of_speed.ci_high});
  }
  const Row &best = rows.front(), &worst = rows.back();
  if (rows.size() == 1)
    figure.finding = fmt::format("{} trains {} tokens a second (95 % interval of the median {}).", best.label,
                                 tokens(best.of_speed.median), interval(best.of_speed));
  else
    figure.finding = fmt::format("{} is the fastest with {} tokens a second, {:.2f} times {}, the slowest{}.", best.label,
                                 tokens(best.of_speed.median), best.of_speed.median / worst.of_speed.median, worst.label,
                                 as_fast ? fmt::format("; {} other{} not significantly slower (~, Mann-Whitney, p ≥ {})",
                                                       as_fast, as_fast == 1 ? " is" : "s are", significant)
                                         : "; all others are significantly slower (Mann-Whitney)");
  if (std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row.of_speed.has_interval; }))
    figure.finding += " Fewer than six steps have no interval of 95 %: their extremes stand for it.";
  figure.charts.push_back(draw(chart));
  return figure;
}

}  // namespace chorale::report
