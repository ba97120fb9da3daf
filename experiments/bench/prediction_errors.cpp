#include "experiments/bench/prediction_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/bench/barrier_time.hpp"
#include "experiments/common/each.hpp"
#include "experiments/common/simulated.hpp"

namespace chorale::bench {
namespace {

constexpr double close_enough = 1.1;

// A set of rows for the same operation and size, with different algorithms.
struct Contest {
  std::vector<const SeriesRow*> rows;

  bool is_clear() const {
    const SeriesRow& best = fastest();
    return rows.size() > 1 && std::ranges::all_of(rows, [&](const SeriesRow* row) {
             return row == &best || same_work(*row, best) || row->ci_low > best.ci_high;
           });
  }
  bool is_won() const {
    const SeriesRow& chosen = **std::ranges::min_element(rows, {}, &SeriesRow::predicted);
    return chosen.median <= close_enough * fastest().median;
  }

 private:
  const SeriesRow& fastest() const { return **std::ranges::min_element(rows, {}, &SeriesRow::median); }
  static bool same_work(const SeriesRow& a, const SeriesRow& b) { return a.chosen == b.chosen && a.chunks == b.chunks; }
};

// Whether a barrier took about as long before this row as when the prices were measured (barrier_time.hpp). Returns true if
// either time is unknown, or if cores run several ranks.
bool is_comparable(const SeriesRow& row) {
  return std::isnan(row.barrier) || std::isnan(row.usual_barrier) || row.oversubscribed ||
         is_usual(row.barrier, row.usual_barrier);
}

std::string left_out(const std::vector<const SeriesRow*>& rows) {
  return fmt::format(
      "# not compared: {} rows, before which a barrier took {:.2g} µs; it took {:.2g} µs when the prices were measured, so "
      "the cores had another distance\n",
      rows.size(), 1e6 * usual_barrier(each(rows, &SeriesRow::barrier)), 1e6 * rows[0]->usual_barrier);
}

std::string quantiles(std::vector<double> errors) {
  std::ranges::sort(errors);
  const double middle = errors[errors.size() / 2], high = errors[errors.size() * 95 / 100];
  return fmt::format("half of {} rows {} (|ln| {:.2f}), 95 of 100 {} ({:.2f})", errors.size(), within(middle), middle,
                     within(high), high);
}

}  // namespace

std::string within(double error) {
  return error < std::log(2) ? fmt::format("within {:.0f} %", 100 * std::expm1(error))
                             : fmt::format("within a factor of {:.2g}", std::exp(error));
}

std::string prediction_errors(const Rows& rows) {
  using Group = std::tuple<std::string, std::int64_t, std::int64_t>;  // backend, groups and ranks
  using Question = std::tuple<Collective, std::int64_t, bool, DType, std::int64_t>;
  std::map<Group, std::vector<double>> errors;
  std::map<Group, std::map<Question, Contest>> contests;
  std::map<Group, std::vector<const SeriesRow*>> apart;
  for (const SeriesRow& row : rows) {
    const bool measured = !is_simulated(row.backend) && row.op != Collective::barrier && row.median > 0;
    if (!measured || std::isnan(row.predicted) || !row.calibrated) continue;
    const Group group{row.backend, row.groups, row.ranks};
    if (!is_comparable(row)) {
      apart[group].push_back(&row);
      continue;
    }
    errors[group].push_back(std::abs(std::log(row.predicted / row.median)));
    contests[group][{row.op, row.bytes, row.in_place, row.dtype, row.root}].rows.push_back(&row);
  }
  std::string text;
  for (const auto& [group, found] : errors) {
    const auto& [backend, groups, ranks] = group;
    text += fmt::format("# predicted / measured, {} on {}{} ranks: {}\n", backend,
                        groups > 1 ? fmt::format("{} groups of ", groups) : "", ranks, quantiles(found));
    int clear = 0, won = 0;
    for (const auto& [question, contest] : contests[group])
      if (contest.is_clear()) {
        ++clear;
        won += contest.is_won();
      }
    if (clear > 0)
      text += fmt::format(
          "# the algorithm that was predicted fastest is within 10 % of the fastest at {} of the {} sizes that "
          "one clearly wins\n",
          won, clear);
  }
  for (const auto& [group, rows_apart] : apart) text += left_out(rows_apart);
  return text;
}

}  // namespace chorale::bench
