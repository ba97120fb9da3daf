#include "experiments/report/record_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "experiments/common/parse_number.hpp"
#include "experiments/report/csv_rows.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"

namespace chorale::report {
namespace {

// Returns the position of an element in a variable. `at`: one index for each dimension in `names`. Indices of dimensions
// that the variable lacks are ignored. Returns −1 if the variable has a dimension that is not in `names`.
std::int64_t place_in(const Variable& variable, const std::vector<std::string>& names, const std::vector<std::int64_t>& at) {
  std::int64_t index = 0;
  for (std::size_t d = 0; d < variable.shape.size(); ++d) {
    const auto axis = std::find(names.begin(), names.end(), variable.dimensions[d]);
    if (axis == names.end()) return -1;
    index = index * variable.shape[d] + at[static_cast<std::size_t>(axis - names.begin())];
  }
  return index < static_cast<std::int64_t>(variable.cells.size()) ? index : -1;
}

// Prints a group as one table, with one row per element of the variable with the most dimensions. For example, a variable
// with the dimensions (step, rank, phase) gives one row per triple. Columns show the labels of each dimension, or its
// indices if this group does not have the labels.
TextTable tabulate(const std::vector<Variable>& variables, bool shorten) {
  const Variable& widest = *std::ranges::max_element(variables, {}, [](const Variable& v) { return v.shape.size(); });
  const auto& names = widest.dimensions;
  std::vector<std::string> columns;
  std::vector<std::size_t> numbered;
  for (std::size_t d = 0; d < names.size(); ++d)
    if (!std::ranges::count(variables, names[d], &Variable::name)) {
      numbered.push_back(d);
      columns.push_back(names[d]);
    }
  for (const Variable& v : variables) columns.push_back(v.name);

  TextTable table(columns);
  std::vector<std::int64_t> at(names.size(), 0);
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(widest.cells.size()); ++row) {
    std::int64_t rest = row;
    for (std::size_t d = names.size(); d-- > 0; rest /= widest.shape[d]) at[d] = rest % widest.shape[d];
    std::vector<std::string> cells;
    for (const std::size_t d : numbered) cells.push_back(fmt::format("{}", at[d]));
    for (const Variable& v : variables) {
      const std::int64_t place = place_in(v, names, at);
      const std::string cell = place < 0 ? "" : v.cells[static_cast<std::size_t>(place)];
      cells.push_back(shorten ? shortened(cell) : cell);
    }
    table.add(std::move(cells));
  }
  return table;
}

std::string path_of(const std::string& group) { return group.starts_with("/") ? group : "/" + group; }

std::vector<std::string> chosen_groups(const Reader& reader, const WantedTables& wanted) {
  if (!wanted.group.empty()) return {path_of(wanted.group)};
  auto groups = reader.groups();
  std::erase(groups, "/");  // shared dimensions are shown with the groups that use them
  return groups;
}

// A table of a file, including the rows of CSV files.
std::vector<Variable> variables_of(const RecordFile& file, const std::string& group, std::int64_t rows) {
  std::vector<Variable> variables = file.reader.variables(group, rows);
  if (group == "/summary") append_to_summary(variables, file.rows);
  return variables;
}

// `most`: the number of lines to print of each string; -1 means all lines.
void print_texts(const Variable& variable, std::int64_t most) {
  fmt::print("{}:\n", escape_control(variable.name));
  std::vector<std::string> lines;
  for (const std::string& text : variable.cells) std::ranges::copy(split(text, '\n'), std::back_inserter(lines));
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  const std::size_t shown = most < 0 ? lines.size() : std::min(lines.size(), static_cast<std::size_t>(most));
  for (std::size_t line = 0; line < shown; ++line) fmt::print("  {}\n", escape_control(lines[line]));
  if (shown < lines.size()) fmt::print("  … and {} lines more\n", lines.size() - shown);
}

void print_text(const RecordFile& file, const WantedTables& wanted) {
  if (wanted.group.empty()) {
    fmt::print("{}\n", escape_control(file.name));
    for (const auto& [name, value] : file.reader.attributes())
      fmt::print("  {:<18} {}\n", escape_control(name), escape_control(value));
    for (const Variable& variable : file.reader.variables("/"))  // strings of the run have no dimensions
      if (variable.shape.empty() && !variable.cells.empty())
        fmt::print("  {:<18} {}\n", escape_control(variable.name), escape_control(variable.cells[0]));
  }
  for (const std::string& group : chosen_groups(file.reader, wanted)) {
    const auto variables = variables_of(file, group, wanted.rows);
    const std::int64_t all = file.reader.rows(group);
    fmt::print("\n{}{}\n", escape_control(group), all >= 0 ? fmt::format("  ({} rows)", all) : "");
    const bool texts = std::all_of(variables.begin(), variables.end(), [](const Variable& v) { return v.shape.empty(); });
    for (const Variable& v : texts ? variables : std::vector<Variable>{})  // single strings, such as a config file
      print_texts(v, wanted.group.empty() ? wanted.rows : -1);
    if (!texts) fmt::print("{}", tabulate(variables, true).print("text", wanted.columns));
  }
}

nlohmann::ordered_json as_json(const RecordFile& file, const WantedTables& wanted) {
  nlohmann::ordered_json object{{"file", file.name}, {"attributes", nlohmann::ordered_json::object()}};
  for (const auto& [name, value] : file.reader.attributes()) {
    const auto number = nlohmann::ordered_json::parse(file.reader.is_number(name) ? value : "", nullptr, false);
    object["attributes"][name] = number.is_discarded() ? nlohmann::ordered_json(value) : number;
  }
  for (const std::string& group : chosen_groups(file.reader, wanted))
    object["groups"][group] =
        nlohmann::ordered_json::parse(tabulate(variables_of(file, group, wanted.rows), false).print("json"));
  return object;
}

// Prints a single requested table without a heading, so that a CSV reader finds the column names in the first line.
void print_groups(const RecordFile& file, const WantedTables& wanted, bool alone) {
  for (const std::string& group : chosen_groups(file.reader, wanted)) {
    if (!alone) fmt::print("{}{}\n", wanted.format == "md" ? "## " : "# ", group);
    const TextTable table = tabulate(variables_of(file, group, wanted.rows), false);
    fmt::print("{}{}", table.print(wanted.format), alone ? "" : "\n");
  }
}

}  // namespace

std::string shortened(const std::string& cell) {
  const auto value = parse_number(cell);
  return value && cell.find('.') != std::string::npos ? fmt::format("{:.6g}", *value) : cell;
}

void require_group(const RecordFile& file, const std::string& group) {
  const auto groups = file.reader.groups();
  if (std::count(groups.begin(), groups.end(), path_of(group))) return;
  usage_error(fmt::format("no group {} in this record", path_of(group)),
              fmt::format("{} has {}", file.name, join(groups, ", ")),
              did_you_mean(path_of(group), groups, "name one of these"));
}

void print_tables(std::span<const RecordFile> files, const WantedTables& wanted) {
  auto all = nlohmann::ordered_json::array();
  for (const RecordFile& file : files) {
    if (wanted.format == "text") print_text(file, wanted);
    if (wanted.format == "json") all.push_back(as_json(file, wanted));
    if (wanted.format == "csv" || wanted.format == "md")
      print_groups(file, wanted, files.size() == 1 && !wanted.group.empty());
  }
  if (wanted.format == "json") fmt::print("{}\n", all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace chorale::report
