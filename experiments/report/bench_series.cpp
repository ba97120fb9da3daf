#include "experiments/report/bench_series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace chorale::report {
namespace {

// Columns that must have equal values in all rows of an operation, and columns that become part of a series' name.
constexpr const char* conditions[] = {"dtype", "redop", "root", "in_place", "cache", "memory"};
constexpr const char* tells_apart[] = {"ranks", "chunks"};

struct Found {
  std::string block;
  std::map<std::string, std::vector<std::string>> words;
  std::map<std::string, std::vector<double>> numbers;
  std::size_t rows = 0;

  const std::string& word(const std::string& column, std::size_t row) const {
    static const std::string none;
    const auto found = words.find(column);
    return found == words.end() || row >= found->second.size() ? none : found->second[row];
  }
  double number(const std::string& column, std::size_t row) const {
    const auto found = numbers.find(column);
    return found == numbers.end() || row >= found->second.size() ? 0 : found->second[row];
  }
};

Found find_in(const Run& run) {
  Found found{.block = run.block};
  const Group group = run.group("series");
  for (const char* column :
       {"op", "backend", "algorithm", "chosen", "dtype", "redop", "root", "in_place", "cache", "memory", "ranks", "chunks"})
    found.words[column] = group.words(column);
  for (const char* column : {"ranks", "chunks", "root", "count", "bytes", "median", "ci_low", "ci_high", "predicted",
                             "ceiling", "bytes_sent", "bytes_predicted", "repetitions"})
    found.numbers[column] = group.numbers(column);
  found.rows = found.words["op"].size();
  return found;
}

}  // namespace

std::vector<BenchRow> bench_rows(const RecordSet& records) {
  std::vector<Found> all;
  std::map<std::string, std::set<std::string>> seen;
  std::map<std::string, std::string> first_condition;  // by operation
  for (const auto& same : records.labelled("series"))
    for (const Run* run : same) all.push_back(find_in(*run));
  const auto condition_of = [](const Found& found, std::size_t row) {
    std::string condition;
    for (const char* column : conditions) condition += found.word(column, row) + "/";
    return condition;
  };
  for (const Found& found : all)
    for (std::size_t row = 0; row < found.rows; ++row) {
      first_condition.emplace(found.word("op", row), condition_of(found, row));
      for (const char* column : tells_apart) seen[column].insert(found.word(column, row));
    }
  std::vector<BenchRow> rows;
  std::map<std::size_t, std::vector<double>> ceilings;  // as each run measured it, by the index in `rows`
  std::map<std::string, std::size_t> places;            // the index in `rows`, by operation, name and bytes
  for (const Found& found : all)
    for (std::size_t row = 0; row < found.rows; ++row) {
      const std::string op = found.word("op", row);
      if (condition_of(found, row) != first_condition[op]) continue;
      std::string name = found.word("backend", row) + " " + found.word("algorithm", row);
      if (seen["ranks"].size() > 1) name += fmt::format(", {} ranks", found.word("ranks", row));
      if (seen["chunks"].size() > 1) name += fmt::format(", {} chunks", found.word("chunks", row));
      const auto number = [&](const char* column) { return found.number(column, row); };
      const auto [place, is_new] = places.emplace(fmt::format("{}/{}/{}", op, name, number("bytes")), rows.size());
      if (is_new)
        rows.push_back({op,
                        name,
                        found.word("chosen", row),
                        static_cast<std::int64_t>(number("ranks")),
                        static_cast<std::int64_t>(number("count")),
                        static_cast<std::int64_t>(number("chunks")),
                        static_cast<std::int64_t>(number("root")),
                        {},
                        number("bytes"),
                        number("median"),
                        number("ci_low"),
                        number("ci_high"),
                        number("predicted"),
                        number("ceiling"),
                        number("bytes_sent"),
                        number("bytes_predicted"),
                        spread_name(true, number("repetitions") >= fewest_blocks, "calls")});
      rows[place->second].blocks.emplace(found.block, number("median"));
      ceilings[place->second].push_back(number("ceiling"));
    }
  for (const auto& [place, of_runs] : ceilings) rows[place].ceiling = summarize(of_runs).median;
  for (BenchRow& row : rows) {
    if (row.blocks.size() == 1) continue;  // the row keeps the interval of its calls
    const Summary all = summarize(row.blocks);
    row.spread = spread_name(false, all.has_interval);
    row.median = all.median, row.ci_low = all.ci_low, row.ci_high = all.ci_high;
  }
  return rows;
}

std::size_t fewest_blocks_of(const std::vector<BenchRow>& rows) {
  std::size_t fewest = rows.empty() ? 0 : rows.front().blocks.size();
  for (const BenchRow& row : rows) fewest = std::min(fewest, row.blocks.size());
  return fewest;
}

std::string spreads_of(const std::vector<BenchRow>& rows) {
  std::set<std::string> kinds;
  for (const BenchRow& row : rows) kinds.insert(row.spread);
  return spread_names(kinds);
}

std::vector<std::string> operations_of(const std::vector<BenchRow>& rows) {
  std::vector<std::string> ops;
  for (const BenchRow& row : rows)
    if (!std::count(ops.begin(), ops.end(), row.op)) ops.push_back(row.op);
  return ops;
}

std::vector<double> sizes_of(const std::vector<BenchRow>& rows) {
  std::set<double> sizes;
  for (const BenchRow& row : rows) sizes.insert(row.bytes);
  return {sizes.begin(), sizes.end()};
}

}  // namespace chorale::report
