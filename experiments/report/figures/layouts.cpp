// Shows the runs side by side: speed, memory, traffic and loss. The metric is speed or held-out loss (metric.hpp). The table
// is sorted by the metric, and shows the interval of the metric. Memory is the maximum over the repetitions; every other
// value is the median over the repetitions. A test of paired blocks decides which run is best (blocks.hpp). A block is a
// seed, or a repetition in which all runs were executed one after the other. The mark ~ means that a run cannot be
// distinguished from the best. The mark ? means that a run has too few repetitions or seeds for a test.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/blocks.hpp"
#include "experiments/report/figures/figures.hpp"
#include "experiments/report/figures/pareto.hpp"
#include "experiments/report/training.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

struct LayoutRow {
  std::string label;
  std::size_t runs = 0;
  bool simulated = false;  // in virtual time, so repetitions would not differ
  std::string mark = {};   // "? " or "~ "
  ByBlock judged;          // the values of the metric, by block; empty if the runs have none
  Summary of_judged = {.median = absent, .ci_low = absent, .ci_high = absent};
  double speed = absent, predicted = absent, mfu = absent, peak = absent, sent = absent, bubble = absent, dropped = absent,
         imbalance = absent, loss = absent;
};

LayoutRow row_of(const std::vector<const RecordedRun*>& runs, const Criterion& criterion) {
  LayoutRow row{.label = runs.front()->label, .runs = runs.size(), .simulated = runs.front()->simulated()};
  const ByBlock speed = per_block(runs, steady_steps("tokens_per_s"));
  if (!speed.empty()) row.speed = summarize(speed).median;
  if (const ByBlock mfu = per_block(runs, steady_steps("mfu")); !mfu.empty()) row.mfu = summarize(mfu).median;
  const auto median = [&](double (*of)(const RecordedRun&)) { return over_repetitions(runs, of).median; };
  row.peak = largest_peak(fullest_of(runs));
  row.sent = median(bytes_per_step);
  row.bubble = median(bubble_share);
  row.dropped = median(dropped_share);
  row.imbalance = median(attention_imbalance);
  row.loss = median(held_out_loss);
  row.predicted = median([](const RecordedRun& run) { return steady_median(run, "tokens") / predicted_step_time(run); });
  row.judged = per_block(runs, criterion.samples);
  if (!row.judged.empty())  // the steps of one run have a spread, but its loss is a single value
    row.of_judged = criterion.highest_is_best ? spread_of(runs, criterion.samples) : summarize(row.judged);
  return row;
}

std::string tokens(double a_second) { return quantity(a_second, Unit::plain, 4); }

// Whether the rows differ from the best row. Rows with too few blocks are left out of the test, because they say nothing
// about the other rows.
struct LayoutVerdict {
  std::size_t first = 0;             // the best row with enough blocks, with which other rows are compared
  std::size_t alike = 0;             // number of rows that cannot be distinguished from the best row
  std::size_t tested = 0;            // number of rows that were compared with the best row
  std::vector<std::string> unknown;  // the labels of rows with too few blocks
  std::size_t fewest = 0;            // minimum number of blocks of a row
  bool none_has_enough = false;
  std::string test;  // "paired t-test over 6 seeds, Holm's correction, p < 0.05"
};

// Returns the verdict, and sets the marks of the rows.
LayoutVerdict verdict_on(std::vector<LayoutRow>& rows, const std::string& blocks) {
  LayoutVerdict verdict{.fewest = rows.front().judged.size()};
  std::vector<std::size_t> enough;
  std::vector<ByBlock> judged;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].judged.empty()) continue;  // for example, a run of a different program has no held-out loss
    verdict.fewest = std::min(verdict.fewest, rows[i].judged.size());
    if (rows[i].judged.size() >= fewest_blocks) {
      enough.push_back(i);
      judged.push_back(rows[i].judged);
    }
  }
  std::vector<double> p(rows.size(), std::nan(""));  // NaN: too few blocks
  const std::vector<double> found = p_from_the_first(judged);
  for (std::size_t i = 0; i < enough.size(); ++i) p[enough[i]] = found[i];
  verdict.none_has_enough = enough.empty();
  if (enough.empty())
    p.front() = 1;  // the row is best by its median, and has no mark
  else
    verdict.first = enough.front();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].judged.empty()) continue;
    const bool is_other = i != verdict.first, is_unknown = std::isnan(p[i]) && !rows[i].simulated;
    const bool is_alike = is_other && p[i] >= significant;
    verdict.alike += is_alike;
    verdict.tested += is_other && !std::isnan(p[i]);
    if (is_unknown) verdict.unknown.push_back(rows[i].label);
    rows[i].mark = is_unknown ? "? " : is_alike ? "~ " : "";
  }
  if (verdict.tested > 0)
    verdict.test =
        fmt::format("{}, Holm's correction, p {} {}", test_for(judged, blocks), verdict.alike ? "≥" : "<", significant);
  return verdict;
}

std::string cannot_be_distinguished(const LayoutVerdict& verdict) {
  return fmt::format("{} other{} be distinguished from it (~, {}).", verdict.alike,
                     verdict.alike == 1 ? " cannot" : "s cannot", verdict.test);
}

// Returns " Too few runs to tell of mine (?): at least 6 are needed." `samples`: the word "runs" or "seeds".
std::string too_few(const LayoutVerdict& verdict, const char* samples) {
  if (verdict.unknown.empty()) return "";
  constexpr std::size_t most = 3;
  const std::size_t named = std::min(most, verdict.unknown.size()), more = verdict.unknown.size() - named;
  return fmt::format(" Too few {} to tell of {}{} (?): at least {} are needed.", samples,
                     join({verdict.unknown.begin(), verdict.unknown.begin() + static_cast<std::ptrdiff_t>(named)}, "; "),
                     more > 0 ? fmt::format(" and {} more", more) : "", fewest_blocks);
}

// If the best row has too few blocks, the other rows are compared among themselves.
std::string among_others(const std::vector<LayoutRow>& rows, const LayoutVerdict& verdict, const char* best,
                         const char* worse) {
  if (verdict.first == 0 || verdict.tested == 0) return "";
  const std::string& label = rows[verdict.first].label;
  if (verdict.alike > 0)
    return fmt::format(" Of the others, {} is {} by its median; {}", label, best, cannot_be_distinguished(verdict));
  return fmt::format(" Of the others, {} is {}; the rest are significantly {} ({}).", label, best, worse, verdict.test);
}

std::string spread_of_speed(const LayoutRow& row) { return spread_name(row.runs == 1, row.of_judged.has_interval); }

std::string fastest(const std::vector<LayoutRow>& rows, const LayoutVerdict& verdict) {
  const LayoutRow &best = rows.front(), &worst = rows.back();
  const double median = best.of_judged.median, times = median / worst.of_judged.median;
  if (rows.size() == 1)
    return fmt::format("{} trains {} tokens/s ({} {} to {}).", best.label, tokens(median), spread_of_speed(best),
                       tokens(best.of_judged.ci_low), tokens(best.of_judged.ci_high));
  if (std::ranges::all_of(rows, &LayoutRow::simulated))
    return fmt::format("{} is the fastest with {} tokens/s, {:.2f} times the slowest, {}, in virtual time.", best.label,
                       tokens(median), times, worst.label);
  const std::string few = too_few(verdict, "runs");
  if (verdict.first == 0 && verdict.alike == 0 && verdict.tested > 0)
    return fmt::format(
        "{} is the fastest with {} tokens/s, {:.2f} times the slowest, {}; all others{} are significantly slower ({}).{}",
        best.label, tokens(median), times, worst.label, few.empty() ? "" : " with enough runs", verdict.test, few);
  const std::string ahead = fmt::format("{} has the highest median, {} tokens/s, {:.2f} times the lowest, that of {}",
                                        best.label, tokens(median), times, worst.label);
  if (verdict.none_has_enough)
    return fmt::format("{}. Too few runs to tell whether they differ (?): {} of each; {} repetitions in turns are needed.",
                       ahead, verdict.fewest, fewest_blocks);
  if (verdict.first == 0 && verdict.alike > 0) return fmt::format("{}; {}{}", ahead, cannot_be_distinguished(verdict), few);
  return fmt::format("{}.{}{}", ahead, few, among_others(rows, verdict, "the fastest", "slower"));
}

std::string learns_best(const std::vector<LayoutRow>& rows, const LayoutVerdict& verdict) {
  const LayoutRow& best = rows.front();
  const auto worst =
      std::ranges::find_if(rows.rbegin(), rows.rend(), [](const LayoutRow& row) { return !row.judged.empty(); });
  if (worst == rows.rend()) return "No run has a held-out loss.";
  const std::string lowest = quantity(best.of_judged.median, Unit::plain, 4);
  if (&*worst == &best) return fmt::format("{} has a held-out loss of {}.", best.label, lowest);
  const std::string ahead = fmt::format("{} has the lowest held-out loss, {}; the highest is {}, that of {}", best.label,
                                        lowest, quantity(worst->of_judged.median, Unit::plain, 4), worst->label);
  if (verdict.none_has_enough)
    return fmt::format(
        "{}. Too few seeds to tell whether other seeds would give another order (?): {} of each; {} are needed, for "
        "example vary.seed = [1, 2, 3, 4, 5, 6].",
        ahead, verdict.fewest, fewest_blocks);
  const std::string few = too_few(verdict, "seeds");
  if (verdict.first > 0 || verdict.tested == 0)
    return fmt::format("{}.{}{}", ahead, few, among_others(rows, verdict, "the lowest", "higher"));
  if (verdict.alike == 0)
    return fmt::format("{}; all others{} are significantly higher ({}).{}", ahead, few.empty() ? "" : " with enough seeds",
                       verdict.test, few);
  return fmt::format("{}; {}{}", ahead, cannot_be_distinguished(verdict), few);
}

std::string spread_in(const std::vector<LayoutRow>& rows, bool speed_decides) {
  std::set<std::string> kinds;
  for (const LayoutRow& row : rows)
    if (speed_decides)
      kinds.insert(spread_of_speed(row));
    else if (row.judged.size() > 1)
      kinds.insert(row.of_judged.has_interval ? "95 % interval of the seeds" : "range of the seeds");
  return kinds.empty() ? "range of the seeds" : spread_names(kinds);
}

TextTable table_of(const std::vector<LayoutRow>& rows, bool speed_decides, const std::string& spread) {
  const bool alone = rows.size() == 1;
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> cells(rows.size());
  const auto column = [&](const std::string& title, const auto& cell_of) {
    titles.push_back(title);
    for (std::size_t i = 0; i < rows.size(); ++i) cells[i].push_back(cell_of(rows[i]));
  };
  const auto number = [&](const std::string& title, double LayoutRow::*value, Unit unit, int digits = 3) {
    column(title, [&](const LayoutRow& row) { return quantity(row.*value, unit, digits); });
  };
  const auto if_any = [&](const std::string& title, double LayoutRow::*value, Unit unit, int digits) {
    if (std::ranges::any_of(rows, [&](const LayoutRow& row) { return !std::isnan(row.*value); }))
      number(title, value, unit, digits);
  };
  const double best = rows.front().of_judged.median;
  const auto loss = [](double nats) { return quantity(nats, Unit::plain, 4); };
  column("layout", [](const LayoutRow& row) { return row.label; });
  if (speed_decides) {
    column("runs", [](const LayoutRow& row) { return fmt::format("{}", row.runs); });
    number("tokens/s", &LayoutRow::speed, Unit::plain, 4);
    if_any("predicted", &LayoutRow::predicted, Unit::plain, 4);
    column(spread,
           [](const LayoutRow& row) { return tokens(row.of_judged.ci_low) + " to " + tokens(row.of_judged.ci_high); });
    if (!alone)
      column("relative to the fastest",
             [&](const LayoutRow& row) { return fmt::format("{}{:.2f}", row.mark, row.of_judged.median / best); });
  } else {
    column("seeds", [](const LayoutRow& row) { return fmt::format("{}", row.judged.size()); });
    number("held-out loss", &LayoutRow::loss, Unit::plain, 4);
    column(spread, [&](const LayoutRow& row) {
      return row.judged.size() < 2 ? "-" : loss(row.of_judged.ci_low) + " to " + loss(row.of_judged.ci_high);
    });
    if (!alone)
      column("above the lowest",
             [&](const LayoutRow& row) { return row.mark + quantity(row.of_judged.median - best, Unit::plain, 2); });
    number("tokens/s", &LayoutRow::speed, Unit::plain, 4);
  }
  number("MFU", &LayoutRow::mfu, Unit::percent);
  number("memory/rank", &LayoutRow::peak, Unit::bytes);
  number("bytes/step", &LayoutRow::sent, Unit::bytes);
  number("bubble", &LayoutRow::bubble, Unit::percent);
  if_any("dropped", &LayoutRow::dropped, Unit::percent, 2);
  if_any("attention, max/mean", &LayoutRow::imbalance, Unit::plain, 3);
  if (speed_decides) number("held-out loss", &LayoutRow::loss, Unit::plain, 4);
  TextTable table(titles);
  for (const auto& row : cells) table.add(row);
  return table;
}

BarChart chart_of(const std::vector<LayoutRow>& rows, bool speed_decides, const std::string& spread) {
  const double best = rows.front().of_judged.median;
  BarChart chart = speed_decides
                       ? BarChart{.title = "Tokens per second",
                                  .description = fmt::format("One bar per layout, the fastest first; whiskers: {}.", spread),
                                  .axis = {.name = "tokens/s, median of the runs"},
                                  .parts = {"tokens/s"}}
                       : BarChart{.title = "Held-out loss above the lowest",
                                  .description = "One bar for each other layout, the lowest loss first.",
                                  .axis = {.name = fmt::format("nats per token above {} ({}), median of the seeds",
                                                               quantity(best, Unit::plain, 4), rows.front().label)},
                                  .parts = {"loss"}};
  for (const LayoutRow& row : rows) {
    const Summary& judged = row.of_judged;
    if (speed_decides)
      chart.bars.push_back({row.mark + row.label, {judged.median}, judged.ci_low, judged.ci_high});
    else if (!row.judged.empty())
      chart.bars.push_back({row.mark + row.label, {judged.median - best}});
  }
  return chart;
}

}  // namespace

std::optional<Figure> layouts(const RecordSet& records) {
  const Criterion& criterion = criterion_of(records);
  const bool speed_decides = records.metric == by_speed;
  std::vector<LayoutRow> rows;
  for (const auto& runs : ranked(records, "train"))
    if (LayoutRow row = row_of(runs, criterion); !std::isnan(row.speed)) rows.push_back(std::move(row));
  if (rows.empty()) return {};
  const LayoutVerdict verdict = verdict_on(rows, speed_decides ? "repetitions" : "seeds");
  const std::string spread = spread_in(rows, speed_decides);
  Figure figure{.finding = speed_decides ? fastest(rows, verdict) : learns_best(rows, verdict),
                .numbers = table_of(rows, speed_decides, spread),
                .numbers_first = true};
  const std::vector<std::string> unheeded = that_change_learning(records.differing_settings());
  if (speed_decides && !records.metric_is_told && !unheeded.empty())
    figure.finding += fmt::format(
        " The runs differ in {}, which also change{} what they learn: metric = \"held-out loss\" "
        "judges them by that.",
        join(unheeded, " and "), unheeded.size() == 1 ? "s" : "");
  if (std::ranges::any_of(rows, [](const LayoutRow& row) { return row.mfu > 1; }))  // possible in records of older versions
    figure.finding += " MFU exceeds 100 % if the peak was measured on a busy machine.";
  if (rows.size() == 1) return figure;  // a chart of one bar shows nothing
  if (BarChart chart = chart_of(rows, speed_decides, spread); !chart.bars.empty())
    figure.charts.push_back(drawing_of(std::move(chart)));
  std::vector<RunDot> dots;
  for (const LayoutRow& row : rows)
    dots.push_back({row.label, row.peak, row.of_judged.median, row.of_judged.ci_low, row.of_judged.ci_high});
  if (auto tradeoff = tradeoff_of(dots, criterion)) {
    figure.finding += " " + tradeoff->finding;
    figure.charts.push_back(drawing_of(std::move(tradeoff->chart)));
  }
  return figure;
}

}  // namespace chorale::report
