// The runs side by side: speed with its interval, memory, traffic and loss. Each number is the median over the repetitions;
// memory is the most that any of them needed. A paired test over the repetitions, in which all
// runs took turns, decides which run is fastest (blocks.hpp). ~ marks a run that cannot be distinguished from the fastest; ?
// marks too few repetitions to tell.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/blocks.hpp"
#include "experiments/report/figures/figures.hpp"
#include "experiments/report/figures/pareto.hpp"
#include "experiments/report/training.hpp"

namespace chorale::report {
namespace {

struct Row {
  std::string label;
  std::size_t runs = 0;
  bool simulated = false;  // repetitions would not differ
  ByBlock speed;
  Summary of_speed;
  double predicted = absent, mfu = absent, peak = absent, sent = absent, bubble = absent, dropped = absent,
         imbalance = absent, loss = absent;

  std::string spread() const { return spread_name(runs == 1, of_speed.has_interval); }
};

Row row_of(const std::vector<const Run*>& runs) {
  Row row{.label = runs.front()->label, .runs = runs.size(), .simulated = runs.front()->simulated()};
  const auto steps = [](const char* column) {
    return [column](const Run& run) { return run.steady(run.group("train").numbers(column)); };
  };
  row.speed = per_block(runs, steps("tokens_per_s"));
  if (!row.speed.empty()) row.of_speed = spread_of(runs, steps("tokens_per_s"));
  if (const ByBlock mfu = per_block(runs, steps("mfu")); !mfu.empty()) row.mfu = summarize(mfu).median;
  const auto median = [&](double (*of)(const Run&)) { return over_repetitions(runs, of).median; };
  row.peak = largest_peak(fullest_of(runs)), row.sent = median(bytes_per_step), row.bubble = median(bubble_share),
  row.dropped = median(dropped_share), row.imbalance = median(attention_imbalance), row.loss = median(held_out_loss);
  row.predicted = median([](const Run& run) { return steady_median(run, "tokens") / predicted_step_time(run); });
  return row;
}

std::string tokens(double a_second) { return quantity(a_second, Unit::plain, 4); }

std::string interval(const Summary& speed) { return tokens(speed.ci_low) + " to " + tokens(speed.ci_high); }

// Says which run is fastest (the first row), and whether the other rows can be distinguished from it. `alike` is the number
// of rows that cannot. `unknown` is the number of rows with too few `blocks` to tell.
std::string finding_of(const std::vector<Row>& rows, std::size_t alike, std::size_t unknown, std::size_t blocks) {
  const Row &best = rows.front(), &worst = rows.back();
  if (rows.size() == 1)
    return fmt::format("{} trains {} tokens/s ({} {}).", best.label, tokens(best.of_speed.median), best.spread(),
                       interval(best.of_speed));
  std::vector<ByBlock> speeds;
  for (const Row& row : rows) speeds.push_back(row.speed);
  const std::string test = fmt::format("{}, Holm's correction, p {} {}", test_for(speeds), alike ? "≥" : "<", significant);
  if (std::ranges::all_of(rows, &Row::simulated))
    return fmt::format("{} is the fastest with {} tokens/s, {:.2f} times the slowest, {}, in virtual time.", best.label,
                       tokens(best.of_speed.median), best.of_speed.median / worst.of_speed.median, worst.label);
  if (unknown == 0 && alike == 0)
    return fmt::format(
        "{} is the fastest with {} tokens/s, {:.2f} times the slowest, {}; all others are significantly slower ({}).",
        best.label, tokens(best.of_speed.median), best.of_speed.median / worst.of_speed.median, worst.label, test);
  const std::string ahead =
      fmt::format("{} has the highest median, {} tokens/s, {:.2f} times the lowest, that of {}", best.label,
                  tokens(best.of_speed.median), best.of_speed.median / worst.of_speed.median, worst.label);
  if (unknown > 0)
    return fmt::format("{}. Too few runs to tell whether they differ (?): {} of each; {} repetitions in turns are needed.",
                       ahead, blocks, fewest_blocks);
  return fmt::format("{}; {} other{} be distinguished from it (~, {}).", ahead, alike, alike == 1 ? " cannot" : "s cannot",
                     test);
}

}  // namespace

std::optional<Figure> layouts(const RecordSet& records) {
  std::vector<Row> rows;
  for (const auto& runs : ranked(records, "train"))
    if (Row row = row_of(runs); !row.speed.empty()) rows.push_back(std::move(row));
  if (rows.empty()) return {};
  std::vector<ByBlock> speeds;
  for (const Row& row : rows) speeds.push_back(row.speed);
  const std::vector<double> p = p_from_the_first(speeds);
  const auto fewest = std::ranges::min_element(rows, {}, [](const Row& row) { return row.speed.size(); })->speed.size();

  std::set<std::string> kinds;
  for (const Row& row : rows) kinds.insert(row.spread());
  const std::string spread = spread_names(kinds);

  const auto any_has = [&](double Row::*value) {
    return std::ranges::any_of(rows, [&](const Row& row) { return !std::isnan(row.*value); });
  };
  const bool predicts = any_has(&Row::predicted), drops = any_has(&Row::dropped), divides = any_has(&Row::imbalance);
  const bool alone = rows.size() == 1;
  std::vector<std::string> columns{"layout",      "runs",       "tokens/s", spread,         "MFU",
                                   "memory/rank", "bytes/step", "bubble",   "held-out loss"};
  if (!alone) columns.insert(columns.begin() + 4, "relative to the fastest");
  if (drops) columns.insert(columns.end() - 1, "dropped");
  if (divides) columns.insert(columns.end() - 1, "attention, max/mean");
  if (predicts) columns.insert(columns.begin() + 3, "predicted");
  Figure figure{.numbers = TextTable(columns), .numbers_first = true};
  BarChart chart{.title = "Tokens per second",
                 .description = fmt::format("One bar per layout, the fastest first; whiskers: {}.", spread),
                 .axis = {.name = "tokens/s, median of the runs"},
                 .parts = {"tokens/s"}};
  std::vector<RunDot> dots;
  std::size_t alike = 0, unknown = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const bool is_alike = i > 0 && p[i] >= significant, is_unknown = std::isnan(p[i]) && !row.simulated;
    alike += is_alike, unknown += is_unknown;
    const std::string mark = is_unknown ? "? " : is_alike ? "~ " : "";
    const Summary& speed = row.of_speed;
    std::vector<std::string> cells{row.label,
                                   fmt::format("{}", row.runs),
                                   tokens(speed.median),
                                   interval(speed),
                                   quantity(row.mfu, Unit::percent),
                                   quantity(row.peak, Unit::bytes),
                                   quantity(row.sent, Unit::bytes),
                                   quantity(row.bubble, Unit::percent),
                                   quantity(row.loss, Unit::plain, 4)};
    if (!alone) cells.insert(cells.begin() + 4, fmt::format("{}{:.2f}", mark, speed.median / rows[0].of_speed.median));
    if (drops) cells.insert(cells.end() - 1, quantity(row.dropped, Unit::percent, 2));
    if (divides) cells.insert(cells.end() - 1, quantity(row.imbalance, Unit::plain, 3));
    if (predicts) cells.insert(cells.begin() + 3, quantity(row.predicted, Unit::plain, 4));
    figure.numbers.add(cells);
    chart.bars.push_back({mark + row.label, {speed.median}, speed.ci_low, speed.ci_high});
    dots.push_back({row.label, row.peak, speed.median, speed.ci_low, speed.ci_high});
  }
  figure.finding = finding_of(rows, alike, unknown, fewest);
  if (std::ranges::any_of(rows, [](const Row& row) { return row.mfu > 1; }))  // happens in records of older versions
    figure.finding += " MFU exceeds 100 % if the peak was measured on a busy machine.";
  if (alone) return figure;  // a chart of one bar shows nothing
  figure.charts.push_back(drawing_of(std::move(chart)));
  if (auto tradeoff = tradeoff_of(dots, criterion_of(records))) {
    figure.finding += " " + tradeoff->finding;
    figure.charts.push_back(drawing_of(std::move(tradeoff->chart)));
  }
  return figure;
}

}  // namespace chorale::report
