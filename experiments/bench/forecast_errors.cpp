#include "experiments/bench/forecast_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/bench/beat.hpp"
#include "experiments/common/simulated.hpp"

namespace chorale::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double close_enough = 1.1;

// The rows that time the same operation at the same size, with different algorithms.
struct Contest {
  std::vector<const Json*> rows;

  bool is_clear() const {
    const Json& best = *fastest();
    return rows.size() > 1 && std::ranges::all_of(rows, [&](const Json* row) {
             return row == &best || same_work(*row, best) || (*row)["seconds_ci_low"] > best["seconds_ci_high"];
           });
  }
  bool is_won() const {
    const Json& chosen =
        **std::ranges::min_element(rows, {}, [](const Json* row) { return (*row)["predicted_seconds"].get<double>(); });
    return chosen["seconds"].get<double>() <= close_enough * (*fastest())["seconds"].get<double>();
  }

 private:
  const Json* fastest() const {
    return *std::ranges::min_element(rows, {}, [](const Json* row) { return (*row)["seconds"].get<double>(); });
  }
  static bool same_work(const Json& a, const Json& b) { return a["chosen"] == b["chosen"] && a["chunks"] == b["chunks"]; }
};

// Whether the cores were as far apart as when the prices were measured (beat.hpp), as far as is known.
bool is_comparable(const Json& row) {
  const Json beat = row.value("barrier_seconds", Json()), usual = row.value("usual_barrier_seconds", Json());
  if (beat.is_null() || usual.is_null() || row.value("oversubscribed", 0) == 1) return true;
  return is_usual(beat.get<double>(), usual.get<double>());
}

std::string left_out(const std::vector<const Json*>& rows) {
  std::vector<double> beats;
  for (const Json* row : rows) beats.push_back((*row)["barrier_seconds"].get<double>());
  return fmt::format(
      "# not compared: {} rows, before which a barrier took {:.2g} µs; it took {:.2g} µs when the prices were measured, so "
      "the cores had another distance\n",
      rows.size(), 1e6 * usual_beat(std::move(beats)), 1e6 * (*rows[0])["usual_barrier_seconds"].get<double>());
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

std::string forecast_errors(const std::vector<Json>& rows) {
  using Group = std::pair<std::string, std::int64_t>;  // backend and ranks
  std::map<Group, std::vector<double>> errors;
  std::map<Group, std::map<std::string, Contest>> contests;
  std::map<Group, std::vector<const Json*>> apart;
  for (const Json& row : rows) {
    const bool is_barrier = row["op"] == "barrier";
    const bool measured = !is_simulated(row["backend"]);
    if (!measured || row["predicted_seconds"].is_null() || row["calibrated"] != 1 || is_barrier || row["seconds"] <= 0.0)
      continue;
    const Group group{row["backend"].get<std::string>(), row["ranks"].get<std::int64_t>()};
    if (!is_comparable(row)) {
      apart[group].push_back(&row);
      continue;
    }
    errors[group].push_back(std::abs(std::log(row["predicted_seconds"].get<double>() / row["seconds"].get<double>())));
    const std::string question = fmt::format("{} {} {} {} {}", row["op"].dump(), row["bytes"].dump(), row["in_place"].dump(),
                                             row["dtype"].dump(), row["root"].dump());
    contests[group][question].rows.push_back(&row);
  }
  std::string text;
  for (const auto& [group, found] : errors) {
    text += fmt::format("# predicted / measured, {} on {} ranks: {}\n", group.first, group.second, quantiles(found));
    int clear = 0, won = 0;
    for (const auto& [question, contest] : contests[group])
      if (contest.is_clear()) ++clear, won += contest.is_won();
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
