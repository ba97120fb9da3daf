#include "experiments/report/bench_series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "experiments/common/each.hpp"

namespace chorale::report {
namespace {

// Columns of /series that are part of the question, and settings that only repeat columns of /series.
constexpr const char* conditions[] = {"dtype",  "redop",   "root",     "ranks", "hosts",
                                      "groups", "strided", "in_place", "cache", "memory"};
const std::set<std::string> told_by_columns{"operations", "backend",  "algorithm", "dtype", "op",     "root",
                                            "chunks",     "in-place", "begin",     "end",   "factor", "ranks",
                                            "cache",      "memory",   "device",    "hosts", "groups", "strided"};

struct BenchBlock {
  std::string block, settings;  // `settings`: see other_settings
  std::string pretended;        // --hosts: the emulated hosts, for which algorithms were chosen
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

BenchBlock find_in(const RecordedRun& run) {
  BenchBlock found{.block = run.block, .settings = other_settings(run), .pretended = run.setting("hosts")};
  const RecordGroup group = run.group("series");
  for (const char* column : {"op", "backend", "algorithm", "chosen", "chunks"}) found.words[column] = group.words(column);
  for (const char* column : conditions) found.words[column] = group.words(column);
  if (const auto machine = run.root().words("simulated_on"); !machine.empty())
    std::ranges::replace(found.words["backend"], "simulated", "simulated:" + machine[0]);
  const std::size_t rows = found.words["op"].size();
  for (const auto& [column, usual] : {std::pair("groups", "1"), std::pair("strided", "no")})  // older records lack these
    if (found.words[column].empty()) found.words[column].assign(rows, usual);
  for (const char* column : {"ranks", "chunks", "root", "count", "bytes", "median", "ci_low", "ci_high", "predicted",
                             "ceiling", "bytes_sent", "bytes_predicted", "repetitions"})
    found.numbers[column] = group.numbers(column);
  found.rows = rows;
  return found;
}

// Formats a condition as text: "4 ranks", "in place". Returns "" if the condition does not exist, such as the root of an
// all_reduce.
std::string words_for(const std::string& column, const std::string& value) {
  if (value.empty() || value == "none" || value == "-1") return "";
  if (column == "root") return "root " + value;
  if (column == "strided") return value == "yes" ? "strided" : "";
  if (column == "ranks" || column == "hosts")
    return fmt::format("{} {}", value, value == "1" ? column.substr(0, 4) : column);
  if (column == "groups") return fmt::format("{} group{}", value, value == "1" ? "" : "s");
  if (column == "in_place") return value == "yes" ? "in place" : "out of place";
  if (column == "cache") return value + " cache";
  if (column == "memory") return value + " memory";
  return value;
}

// Names the questions of all rows. A name states the conditions that differ between the rows of an operation.
class Questions {
 public:
  explicit Questions(const std::vector<BenchBlock>& all) {
    for (const BenchBlock& found : all)
      for (std::size_t row = 0; row < found.rows; ++row) {
        auto& seen = seen_[found.word("op", row)];
        for (const char* column : conditions) seen[column].insert(found.word(column, row));
        seen["pretended"].insert(found.pretended);
      }
  }

  std::string name(const BenchBlock& found, std::size_t row) const {
    const auto& seen = seen_.at(found.word("op", row));
    const auto differs = [&](const char* column) { return seen.at(column).size() > 1; };
    std::string name = found.word("op", row);
    if (differs("dtype")) name += " of " + found.word("dtype", row);
    for (const char* column : conditions)
      if (const std::string words = words_for(column, found.word(column, row));
          column != std::string("dtype") && differs(column) && !words.empty())
        name += ", " + words;
    if (differs("pretended") && !found.pretended.empty()) name += ", pretended " + found.pretended;
    return name;
  }

 private:
  std::map<std::string, std::map<std::string, std::set<std::string>>> seen_;  // the values of each condition, by operation
};

}  // namespace

std::string other_settings(const RecordedRun& run) {
  std::string text;
  for (const auto& [key, words] : run.differing)
    if (!told_by_columns.count(key)) text += ", " + words;
  return text;
}

std::vector<BenchRow> bench_rows(const RecordSet& records) {
  std::vector<BenchBlock> all;
  std::set<std::string> chunks;
  for (const auto& same : records.labeled("series"))
    for (const RecordedRun* run : same) all.push_back(find_in(*run));
  for (const BenchBlock& found : all)
    for (std::size_t row = 0; row < found.rows; ++row) chunks.insert(found.word("chunks", row));
  const Questions questions(all);
  struct Measured {
    std::map<std::string, std::vector<double>> medians;  // times in seconds; the key is the block
    std::vector<double> ceilings;
  };
  std::vector<BenchRow> rows;
  std::vector<Measured> measured;             // for each row
  std::map<std::string, std::size_t> places;  // indices in `rows`; the key joins the question, the name and the bytes
  for (const BenchBlock& found : all)
    for (std::size_t row = 0; row < found.rows; ++row) {
      const std::string question = questions.name(found, row);
      std::string name = found.word("backend", row) + " " + found.word("algorithm", row);
      if (chunks.size() > 1) name += fmt::format(", {} chunks", found.word("chunks", row));
      name += found.settings;
      const auto number = [&](const char* column) { return found.number(column, row); };
      const auto [place, is_new] = places.emplace(fmt::format("{}/{}/{}", question, name, number("bytes")), rows.size());
      if (is_new) {
        rows.push_back({found.word("op", row),
                        question,
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
        measured.emplace_back();
      }
      measured[place->second].medians[found.block].push_back(number("median"));
      measured[place->second].ceilings.push_back(number("ceiling"));
    }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    BenchRow& row = rows[r];
    for (const auto& [block, medians] : measured[r].medians) row.blocks[block] = summarize(medians).median;
    row.ceiling = summarize(measured[r].ceilings).median;
    if (measured[r].ceilings.size() == 1) continue;  // a row that was measured once keeps the interval of its calls
    const Summary all_blocks = summarize(row.blocks);
    row.spread = spread_name(false, all_blocks.has_interval);
    row.median = all_blocks.median;
    row.ci_low = all_blocks.ci_low;
    row.ci_high = all_blocks.ci_high;
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

std::vector<std::string> questions_of(const std::vector<BenchRow>& rows) {
  std::vector<std::string> ops;
  std::vector<const BenchRow*> firsts;
  for (const BenchRow& row : rows) {
    if (!std::count(ops.begin(), ops.end(), row.op)) ops.push_back(row.op);
    if (std::ranges::none_of(firsts, [&](const BenchRow* first) { return first->question == row.question; }))
      firsts.push_back(&row);
  }
  std::ranges::stable_sort(
      firsts, {}, [&](const BenchRow* row) { return std::pair(std::ranges::find(ops, row->op) - ops.begin(), row->ranks); });
  return each(firsts, &BenchRow::question);
}

std::vector<double> sizes_of(const std::vector<BenchRow>& rows) {
  std::set<double> sizes;
  for (const BenchRow& row : rows) sizes.insert(row.bytes);
  return {sizes.begin(), sizes.end()};
}

}  // namespace chorale::report
