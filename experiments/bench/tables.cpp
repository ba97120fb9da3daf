#include "experiments/bench/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "experiments/common/each.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"
#include "src/record/run_folder.hpp"

namespace chorale::bench {
namespace {

using Json = nlohmann::ordered_json;
using Row = const SeriesRow*;
using Group = std::vector<Row>;

constexpr const char* to = "–";  // between the ends of a range

std::string cell_of(const std::string& text) { return text; }
std::string cell_of(std::int64_t number) { return fmt::format("{}", number); }
std::string cell_of(double number) {
  if (std::isnan(number)) return "-";
  return std::abs(number) < 1e4 ? fmt::format("{:.4g}", number) : fmt::format("{:.0f}", number);
}
template <class T>
std::string cell_of(const std::optional<T>& value) {
  return value ? cell_of(*value) : "-";
}

template <class Value>
bool differ(const Group& rows, Value SeriesRow::*member) {
  return std::ranges::any_of(rows, [&](Row row) { return row->*member != rows[0]->*member; });
}

// "all_reduce of f32, sum, 2 ranks, shm, out of place"
std::string title_of(const Group& rows) {
  const SeriesRow& row = *rows[0];
  std::vector<std::string> words{name_of(row.op)};
  if (row.op != Collective::barrier) words[0] += fmt::format(" of {}", name_of(row.dtype));
  if (row.redop != "none") words.push_back(row.redop);
  if (row.root != -1) words.push_back(fmt::format("root {}", row.root));
  words.push_back(fmt::format("{} rank{}", row.ranks, row.ranks == 1 ? "" : "s"));
  if (row.groups > 1)
    words.back() = fmt::format("{} {}groups, each of {}", row.groups, row.strided ? "strided " : "", words.back());
  if (row.hosts != 1) words.back() += fmt::format(" on {} hosts", row.hosts);
  if (!differ(rows, &SeriesRow::backend)) words.push_back(row.backend);
  if (!differ(rows, &SeriesRow::chunks) && row.chunks != 1) words.push_back(fmt::format("{} chunks", row.chunks));
  if (row.op != Collective::barrier) words.emplace_back(row.in_place ? "in place" : "out of place");
  if (row.products > 0) words.emplace_back("beside products");
  return join(words, ", ");
}

struct TextColumn {
  std::string heading, unit;
  std::function<std::string(const SeriesRow& row)> cell;
};

template <class Value>
TextColumn plain(const std::string& heading, const std::string& unit, Value SeriesRow::*member) {
  return {heading, unit, [member](const SeriesRow& row) { return cell_of(row.*member); }};
}

TextColumn time_column(const std::string& heading, double SeriesRow::*seconds) {
  return {heading, "us", [seconds](const SeriesRow& row) { return cell_of(1e6 * row.*seconds); }};
}

// A single call, as in virtual time, has no tail.
TextColumn tail_column(const std::string& heading, double SeriesRow::*seconds) {
  return {heading, "us",
          [seconds](const SeriesRow& row) { return row.repetitions == 1 ? "-" : cell_of(1e6 * row.*seconds); }};
}

// The columns of `--beside products`, in place of the bandwidths.
std::vector<TextColumn> beside_columns() {
  const auto number = [](const char* form, double value) -> std::string {
    return std::isnan(value) ? "-" : fmt::format(fmt::runtime(form), value);
  };
  return {time_column("beside", &SeriesRow::call_beside),
          time_column("products", &SeriesRow::products_alone),
          {"slower", "×", [=](const SeriesRow& row) { return number("{:.2f}", row.products_beside / row.products_alone); }},
          time_column("both", &SeriesRow::both),
          time_column("predicted", &SeriesRow::both_predicted),
          {"hidden", "%", [=](const SeriesRow& row) { return number("{:.0f}", 100 * row.hidden); }}};
}

// Prints at most three decimals, so that small bandwidths do not widen the column.
TextColumn bandwidth_column(const std::string& heading, double SeriesRow::*bandwidth) {
  return {heading, "GB/s", [bandwidth](const SeriesRow& row) -> std::string {
            const double value = row.*bandwidth / 1e9;
            return std::isnan(value) ? "-" : fmt::format("{:.{}f}", value, value < 10 ? 3 : value < 100 ? 2 : 1);
          }};
}

TextColumn algorithm_column(const Group& rows) {
  const bool all_auto = std::ranges::all_of(rows, [](Row row) { return row->algorithm == "auto"; });
  return {"algorithm", all_auto ? "by auto" : "", [all_auto](const SeriesRow& row) {
            if (row.algorithm == row.chosen || row.chosen.empty()) return row.algorithm;
            return all_auto ? row.chosen : "auto: " + row.chosen;
          }};
}

// Returns half the width of the median's interval, as a percentage of the median. If it exceeds 100 %, returns the interval
// itself.
std::string percent_of_time(const SeriesRow& row) {
  const double time = row.median, half = (row.ci_high - row.ci_low) / 2;
  if (!(time > 0) || row.repetitions == 1) return "-";
  const auto microseconds = [](double seconds) {
    return seconds < 1e-3 ? fmt::format("{:.3g}", 1e6 * seconds) : fmt::format("{:.0f}", 1e6 * seconds);
  };
  if (half > time) return microseconds(row.ci_low) + to + microseconds(row.ci_high);
  return fmt::format("{:.{}f}", 100 * half / time, half < 0.1 * time ? 1 : 0);
}

// The heading states whether the column ± is the spread of the calls in one launch, or the spread of several launches.
TextColumn spread_column(const Group& rows) {
  return {rows[0]->launches == 1 ? "calls" : "launches", "± %", percent_of_time};
}

// Compares each row with the row of the first backend and algorithm at the same size.
TextColumn ratio_column(const std::vector<Group>& sizes, const Group& rows) {
  const SeriesRow& first = *rows[0];
  std::vector<std::string> name;
  if (differ(rows, &SeriesRow::backend)) name.push_back(first.backend);
  if (differ(rows, &SeriesRow::algorithm)) name.push_back(first.algorithm);
  if (differ(rows, &SeriesRow::chunks)) name.push_back(fmt::format("{} chunks", first.chunks));
  return {"time /", join(name, " "), [&sizes, &first](const SeriesRow& row) -> std::string {
            for (const Group& size : sizes)
              for (const Row base : size)
                if (base->bytes == row.bytes && base->backend == first.backend && base->algorithm == first.algorithm &&
                    base->chunks == first.chunks && base->median > 0)
                  return fmt::format("{:.2f}", row.median / base->median);
            return "-";
          }};
}

bool are_compared(const std::vector<Group>& sizes) {
  return std::ranges::any_of(sizes, [](const Group& size) { return size.size() > 1; });
}

std::vector<Group> kinds_of(const Rows& rows) {
  return grouped(rows, [](const SeriesRow& row) {
    return std::tuple(row.op, row.dtype, row.redop, row.root, row.ranks, row.groups, row.strided, row.in_place);
  });
}

// Returns the table of one kind of call. Columns without values are left out. A table that compares rows also lacks the
// predictions and ceilings; JSON and CSV have them. Thus all columns before the tails fit into 80 columns. On a narrow
// screen, the tails follow below.
TextTable table_of(const Group& rows) {
  const std::vector<Group> sizes = grouped(rows, &SeriesRow::bytes);
  std::vector<TextColumn> columns{plain("bytes", "", &SeriesRow::bytes)};
  if (differ(rows, &SeriesRow::backend)) columns.push_back(plain("backend", "", &SeriesRow::backend));
  columns.push_back(algorithm_column(rows));
  if (differ(rows, &SeriesRow::chunks)) columns.push_back(plain("chunks", "", &SeriesRow::chunks));
  columns.push_back(time_column("time", &SeriesRow::median));
  columns.push_back(spread_column(rows));
  const bool beside = std::ranges::any_of(rows, [](Row row) { return row->products > 0; });
  if (beside) {
    std::ranges::move(beside_columns(), std::back_inserter(columns));
  } else {
    columns.push_back(bandwidth_column("algbw", &SeriesRow::algorithm_bandwidth));
    columns.push_back(bandwidth_column("busbw", &SeriesRow::bus_bandwidth));
  }
  if (!beside && are_compared(sizes)) columns.push_back(ratio_column(sizes, rows));
  if (!beside && !are_compared(sizes)) {
    columns.push_back(time_column("predicted", &SeriesRow::predicted));
    columns.push_back(time_column("ceiling", &SeriesRow::ceiling));
  }
  const bool any_wrong = std::ranges::any_of(rows, [](Row row) { return row->wrong.value_or(0) > 0; });
  if (any_wrong) columns.push_back(plain("wrong", "elements", &SeriesRow::wrong));
  columns.push_back(tail_column("p95", &SeriesRow::p95));
  columns.push_back(tail_column("p99", &SeriesRow::p99));
  columns.push_back(tail_column("max", &SeriesRow::max));
  std::erase_if(columns, [&](const TextColumn& column) {
    return std::ranges::all_of(rows, [&](Row row) { return column.cell(*row) == "-"; });
  });
  TextTable table(each(columns, &TextColumn::heading));
  table.units(each(columns, &TextColumn::unit));
  for (const Group& size : sizes)
    for (const Row row : size) table.add(each(columns, [&](const TextColumn& column) { return column.cell(*row); }));
  return table;
}

// The columns of CSV have the names and values of the JSON keys.
std::string csv_of(const Group& rows) {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> lines;
  for (const Row row : rows) {
    const Json object = as_json(*row);
    names.clear();
    std::vector<std::string>& cells = lines.emplace_back();
    for (const auto& [name, value] : object.items()) {
      names.push_back(name);
      cells.push_back(value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  TextTable table(names);
  for (std::vector<std::string>& cells : lines) table.add(std::move(cells));
  return table.print("csv");
}

std::string text_of_json(const Rows& rows) { return Json(each(rows, as_json)).dump(1) + "\n"; }

}  // namespace

std::string print(const Rows& rows, const std::string& format, std::size_t columns) {
  if (format == "json") return text_of_json(rows);
  if (format == "csv") return csv_of(each(rows, [](const SeriesRow& row) { return &row; }));
  std::string out;
  for (const Group& kind : kinds_of(rows))
    out += fmt::format("{}{}{}\n{}{}", out.empty() ? "" : "\n", format == "md" ? "### " : "", title_of(kind),
                       format == "md" ? "\n" : "", table_of(kind).print(format, columns));
  return out;
}

bool shows_ranges(const Rows& rows) {
  return std::ranges::any_of(rows, [](const SeriesRow& row) { return percent_of_time(row).find(to) != std::string::npos; });
}

bool shows_predictions(const Rows& rows) {
  return !is_beside(rows) && std::ranges::any_of(kinds_of(rows), [](const Group& kind) {
    return !are_compared(grouped(kind, &SeriesRow::bytes));
  });
}

bool is_beside(const Rows& rows) {
  return std::ranges::any_of(rows, [](const SeriesRow& row) { return row.products > 0; });
}

std::filesystem::path table_file(const std::filesystem::path& folder, const std::string& collective) {
  return folder / (collective + ".csv");
}

std::vector<std::filesystem::path> write_tables(const Rows& rows, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::vector<std::filesystem::path> files;
  for (const Group& collective : grouped(rows, &SeriesRow::op)) {
    files.push_back(table_file(folder, name_of(collective[0]->op)));
    write_file(files.back(), csv_of(collective));
  }
  return files;
}

}  // namespace chorale::bench
