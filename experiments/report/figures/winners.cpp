// Shows the fastest series (backend and algorithm) for each size of each question (an operation with its conditions,
// bench_series.hpp). Each series has a letter. The mark ~ means that the winner cannot be distinguished from a different
// series. The mark ? means that a cell has too few launches, or too few alternating repetitions, for a test. A cell with a
// single series does not count as a win.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/common/each.hpp"
#include "experiments/report/bench_series.hpp"
#include "experiments/report/figures/figures.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

struct Winner {
  const BenchRow* first = nullptr;
  std::string second;  // the next fastest
  double ahead = 0;    // the ratio of the two times
  double p = 1;        // p-value of the statement that `first` is fastest; NaN with too few blocks
  std::string test;    // the name of the test

  const char* mark() const { return !contested() || p < significant ? "" : std::isnan(p) ? "?" : "~"; }
  bool contested() const { return !second.empty(); }
  bool alone() const { return contested() && p < significant; }
};

Winner winner_of(const std::vector<BenchRow>& rows, const std::string& question, double bytes) {
  std::vector<const BenchRow*> all;
  for (const BenchRow& row : rows)
    if (row.question == question && row.bytes == bytes && row.median > 0) all.push_back(&row);
  if (all.empty()) return {};
  std::ranges::sort(all, {}, &BenchRow::median);
  Winner winner{.first = all.front()};
  if (all.size() > 1) {
    winner.second = all[1]->name;
    winner.ahead = all[1]->median / all[0]->median;
  }
  const std::vector<ByBlock> times = each(all, &BenchRow::blocks);
  winner.p = p_of_being_first(times);
  if (all.size() > 1) winner.test = test_for(times);
  return winner;
}

// Applies Holm's correction to the p-values of all cells, because in a large table some series would win by chance.
void correct(std::vector<std::vector<Winner>>& table) {
  std::vector<double> p;
  for (const auto& row : table)
    for (const Winner& winner : row) p.push_back(winner.contested() ? winner.p : std::nan(""));
  correct_by_holm(p);
  auto next = p.begin();
  for (auto& row : table)
    for (Winner& winner : row) winner.p = *next++;
}

std::string letter_of(std::size_t series) {
  return series < 26 ? std::string(1, static_cast<char>('A' + series)) : fmt::format("{}", series);
}

// The series that win the most cells. `order`: series with the number of cells that they win, in descending order.
std::string leaders_in_words(const std::vector<std::pair<std::string, std::size_t>>& order, std::size_t cells) {
  const std::size_t most = order.front().second;
  std::vector<std::string> leaders;
  for (const auto& [name, count] : order)
    if (count == most) leaders.push_back(name);
  if (leaders.size() == 1)
    return fmt::format("{} has the lowest median in {} of {} cells, the most of any", leaders[0], most, cells);
  if (leaders.size() > 4)
    return fmt::format("{} series have the lowest median in {} of {} cells each", leaders.size(), most, cells);
  const std::string last = leaders.back();
  leaders.pop_back();
  return fmt::format("{} and {} have the lowest median in {} of {} cells each", join(leaders, ", "), last, most, cells);
}

}  // namespace

std::optional<Figure> winners(const RecordSet& records) {
  const std::vector<BenchRow> rows = bench_rows(records);
  const std::vector<std::string> questions = questions_of(rows);
  const std::vector<double> sizes = sizes_of(rows);
  Figure figure{.numbers = TextTable({"operation", "bytes", "fastest", "median", "next", "times as fast", "significant"})};
  CellChart chart{.title = "The fastest by operation and size",
                  .description = "One row per operation, one column per size; the letter names the backend and algorithm.",
                  .row_name = "operation",
                  .column_name = "vector size",
                  .rows = questions};
  std::map<std::string, std::size_t> wins;
  std::vector<std::vector<Winner>> table;
  std::string test;
  for (const double bytes : sizes) chart.columns.push_back(quantity(bytes, Unit::bytes));
  for (const std::string& question : questions) {
    table.emplace_back();
    for (const double bytes : sizes) {
      const Winner winner = winner_of(rows, question, bytes);
      if (winner.first) wins[winner.first->name] += winner.contested();
      if (test.empty()) test = winner.test;
      table.back().push_back(winner);
    }
  }
  if (test.empty()) return {};
  correct(table);
  std::vector<std::pair<std::string, std::size_t>> order(wins.begin(), wins.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::map<std::string, std::size_t> place;
  for (const auto& [name, count] : order) {
    chart.series.emplace_back(letter_of(place.size()), name);
    place.emplace(name, place.size());
  }
  std::size_t fields = 0, alone = 0, unknown = 0;
  for (std::size_t q = 0; q < questions.size(); ++q) {
    chart.cells.emplace_back();
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      const Winner& winner = table[q][s];
      chart.cells.back().push_back({});
      if (!winner.first) continue;
      fields += winner.contested();
      alone += winner.alone();
      unknown += winner.mark() == std::string("?");
      const std::size_t number = place[winner.first->name];
      chart.cells.back().back() = {letter_of(number) + winner.mark(),
                                   fmt::format("{}, {}: {}, {}", questions[q], chart.columns[s], winner.first->name,
                                               quantity(winner.first->median, Unit::seconds)),
                                   winner.first->name};
      figure.numbers.add({questions[q], fmt::format("{:.0f}", sizes[s]), winner.first->name,
                          quantity(winner.first->median, Unit::seconds), winner.contested() ? winner.second : "-",
                          winner.contested() ? fmt::format("{:.2f}", winner.ahead) : "-",
                          !winner.contested() ? "-"
                          : winner.alone()    ? "yes"
                                              : winner.mark()});
    }
  }
  const std::string most = leaders_in_words(order, fields);
  const std::size_t blocks = fewest_blocks_of(rows);
  figure.finding =
      unknown > 0
          ? fmt::format(
                "{}. Too few runs to tell whether the winners differ from the others (?): {} of each; {} launches or "
                "repetitions "
                "in turns are needed.",
                most, blocks, fewest_blocks)
          : fmt::format(
                "{}; {} of {} winners are significantly ahead; the other winners (~) cannot be distinguished from the next "
                "series ({}, "
                "Holm's correction for all cells, p ≥ {}).",
                most, alone, fields, test, significant);
  figure.charts.push_back(drawing_of(std::move(chart)));
  return figure;
}

}  // namespace chorale::report
