#include "experiments/bench/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "src/base/text.hpp"
#include "src/base/text_table.hpp"
#include "src/record/run_folder.hpp"

namespace chorale::bench {
namespace {

using Json = nlohmann::ordered_json;
using JsonRows = std::vector<Json>;
using Row = const Json*;
using Group = std::vector<Row>;

constexpr const char* to = "–";  // between the ends of a range

std::string cell_of(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value;
  if (!value.is_number_float()) return value.dump();
  const double number = value;
  return std::abs(number) < 1e4 ? fmt::format("{:.4g}", number) : fmt::format("{:.0f}", number);
}

// Splits rows into groups in which all keys are equal, in the order in which the groups first appear.
std::vector<Group> grouped(const Group& rows, std::initializer_list<const char*> keys) {
  std::vector<Group> groups;
  for (const Row row : rows) {
    const auto is_alike = [&](const Group& group) {
      return std::ranges::all_of(keys, [&](const char* key) { return (*group[0])[key] == (*row)[key]; });
    };
    if (const auto found = std::ranges::find_if(groups, is_alike); found != groups.end())
      found->push_back(row);
    else
      groups.push_back({row});
  }
  return groups;
}

bool differ(const Group& rows, const char* key) {
  return std::ranges::any_of(rows, [&](Row row) { return (*row)[key] != (*rows[0])[key]; });
}

// "all_reduce of f32, sum, 2 ranks, shm, out of place"
std::string title_of(const Group& rows) {
  const Json& row = *rows[0];
  std::vector<std::string> words{row["op"]};
  if (row["op"] != "barrier") words[0] += " of " + row["dtype"].get<std::string>();
  if (row["redop"] != "none") words.push_back(row["redop"]);
  if (row["root"] != -1) words.push_back("root " + row["root"].dump());
  words.push_back(fmt::format("{} rank{}", row["ranks"].dump(), row["ranks"] == 1 ? "" : "s"));
  if (row["hosts"] != 1) words.back() += fmt::format(" on {} hosts", row["hosts"].dump());
  if (!differ(rows, "backend")) words.push_back(row["backend"]);
  if (!differ(rows, "chunks") && row["chunks"] != 1) words.push_back(row["chunks"].dump() + " chunks");
  if (row["op"] != "barrier") words.emplace_back(row["in_place"] == true ? "in place" : "out of place");
  return join(words, ", ");
}

struct Column {
  std::string heading, unit;
  std::function<std::string(const Json& row)> cell;
};

Column plain(const std::string& heading, const std::string& unit, const char* key) {
  return {heading, unit, [key](const Json& row) { return cell_of(row[key]); }};
}

Column time_column(const std::string& heading, const char* key) {
  return {heading, "us",
          [key](const Json& row) { return row[key].is_null() ? "-" : cell_of(1e6 * row[key].get<double>()); }};
}

// With at most three decimals, so that small sizes do not widen the column.
Column bandwidth_column(const std::string& heading, const char* key) {
  return {heading, "GB/s", [key](const Json& row) -> std::string {
            if (row[key].is_null()) return "-";
            const double value = row[key].get<double>() / 1e9;
            return fmt::format("{:.{}f}", value, value < 10 ? 3 : value < 100 ? 2 : 1);
          }};
}

Column algorithm_column(const Group& rows) {
  const bool all_auto = std::ranges::all_of(rows, [](Row row) { return (*row)["algorithm"] == "auto"; });
  return {"algorithm", all_auto ? "by auto" : "", [all_auto](const Json& row) {
            const std::string asked = row["algorithm"], chosen = row["chosen"];
            return asked == chosen || chosen.empty() ? asked : all_auto ? chosen : "auto: " + chosen;
          }};
}

// Half the interval of the median as a share of it; beyond 100 %, the interval itself.
std::string percent_of_time(const Json& row) {
  const double time = row["seconds"], low = row["seconds_ci_low"], high = row["seconds_ci_high"], half = (high - low) / 2;
  if (!(time > 0) || row["repetitions"] == 1) return "-";
  const auto microseconds = [](double seconds) {
    return seconds < 1e-3 ? fmt::format("{:.3g}", 1e6 * seconds) : fmt::format("{:.0f}", 1e6 * seconds);
  };
  if (half > time) return microseconds(low) + to + microseconds(high);
  return fmt::format("{:.{}f}", 100 * half / time, half < 0.1 * time ? 1 : 0);
}

// The heading says what varies: the calls of one launch, or several launches.
Column spread_column(const Group& rows) {
  return {(*rows[0])["launches"] == 1 ? "calls" : "launches", "± %", percent_of_time};
}

// Compares each row with the first row's backend and algorithm, at the same size.
Column ratio_column(const std::vector<Group>& sizes, const Group& rows) {
  const Json& first = *rows[0];
  std::vector<std::string> name;
  for (const char* key : {"backend", "algorithm", "chunks"})
    if (differ(rows, key)) name.push_back(cell_of(first[key]) + (key == std::string("chunks") ? " chunks" : ""));
  return {"time /", join(name, " "), [&sizes, &first](const Json& row) -> std::string {
            for (const Group& size : sizes)
              for (const Row base : size)
                if ((*base)["bytes"] == row["bytes"] && (*base)["backend"] == first["backend"] &&
                    (*base)["algorithm"] == first["algorithm"] && (*base)["chunks"] == first["chunks"] &&
                    (*base)["seconds"] > 0.0)
                  return fmt::format("{:.2f}", row["seconds"].get<double>() / (*base)["seconds"].get<double>());
            return "-";
          }};
}

bool are_compared(const std::vector<Group>& sizes) {
  return std::ranges::any_of(sizes, [](const Group& size) { return size.size() > 1; });
}

std::vector<Group> kinds_of(const Group& rows) {
  return grouped(rows, {"op", "dtype", "redop", "root", "ranks", "in_place"});
}

// The table of the calls of one kind. Columns without any value are left out. Where rows are compared, so are predictions
// and ceilings, so that the table fits 80 columns; JSON and CSV have them.
TextTable table_of(const Group& rows) {
  const std::vector<Group> sizes = grouped(rows, {"bytes"});
  std::vector<Column> columns{plain("bytes", "", "bytes")};
  if (differ(rows, "backend")) columns.push_back(plain("backend", "", "backend"));
  columns.push_back(algorithm_column(rows));
  if (differ(rows, "chunks")) columns.push_back(plain("chunks", "", "chunks"));
  columns.push_back(time_column("time", "seconds"));
  columns.push_back(spread_column(rows));
  columns.push_back(bandwidth_column("algbw", "algbw_bytes_per_s"));
  columns.push_back(bandwidth_column("busbw", "busbw_bytes_per_s"));
  if (are_compared(sizes)) {
    columns.push_back(ratio_column(sizes, rows));
  } else {
    columns.push_back(time_column("predicted", "predicted_seconds"));
    columns.push_back(time_column("ceiling", "ceiling_seconds"));
  }
  const bool any_wrong =
      std::ranges::any_of(rows, [](Row row) { return !(*row)["wrong"].is_null() && (*row)["wrong"] > 0; });
  if (any_wrong) columns.push_back(plain("wrong", "elements", "wrong"));
  std::erase_if(columns, [&](const Column& column) {
    return std::ranges::all_of(rows, [&](Row row) { return column.cell(*row) == "-"; });
  });
  std::vector<std::string> headings, units;
  for (const Column& column : columns) headings.push_back(column.heading), units.push_back(column.unit);
  TextTable table(headings);
  table.units(units);
  for (const Group& size : sizes)
    for (const Row row : size) {
      std::vector<std::string> cells;
      for (const Column& column : columns) cells.push_back(column.cell(*row));
      table.add(std::move(cells));
    }
  return table;
}

// The columns of CSV are the keys of JSON, and the values are the same.
std::string csv_of(const Group& rows) {
  std::vector<std::string> names;
  for (const auto& [name, value] : rows.at(0)->items()) names.push_back(name);
  TextTable table(names);
  for (const Row row : rows) {
    std::vector<std::string> cells;
    for (const std::string& name : names) {
      const Json value = row->value(name, Json());
      cells.push_back(value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump());
    }
    table.add(std::move(cells));
  }
  return table.print("csv");
}

Group pointers(const JsonRows& rows) {
  Group all;
  for (const Json& row : rows) all.push_back(&row);
  return all;
}

}  // namespace

std::string print(const JsonRows& rows, const std::string& format, std::size_t columns) {
  if (format == "json") return Json(rows).dump(1) + "\n";
  if (format == "csv") return csv_of(pointers(rows));
  std::string out;
  for (const Group& kind : kinds_of(pointers(rows)))
    out += fmt::format("{}{}{}\n{}{}", out.empty() ? "" : "\n", format == "md" ? "### " : "", title_of(kind),
                       format == "md" ? "\n" : "", table_of(kind).print(format, columns));
  return out;
}

bool shows_ranges(const JsonRows& rows) {
  return std::ranges::any_of(rows, [](const Json& row) { return percent_of_time(row).find(to) != std::string::npos; });
}

bool shows_predictions(const JsonRows& rows) {
  return std::ranges::any_of(kinds_of(pointers(rows)),
                             [](const Group& kind) { return !are_compared(grouped(kind, {"bytes"})); });
}

std::filesystem::path table_file(const std::filesystem::path& folder, const std::string& collective) {
  return folder / (collective + ".csv");
}

std::vector<std::filesystem::path> write_tables(const JsonRows& rows, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::vector<std::filesystem::path> files;
  for (const Group& collective : grouped(pointers(rows), {"op"})) {
    files.push_back(table_file(folder, (*collective[0])["op"]));
    write_file(files.back(), csv_of(collective));
  }
  return files;
}

}  // namespace chorale::bench
