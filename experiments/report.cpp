// `chorale report FILE.h5…`: every group of a record as a table. Rows are the newest; text cells keep six digits, the other
// formats keep them all. JSON is an array with one object a file; CSV and Markdown name each group, unless one was asked for.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "experiments/command.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"
#include "src/record/reader.hpp"

namespace chorale {
namespace {

std::string shortened(const std::string& cell) {
  char* end = nullptr;
  const double value = std::strtod(cell.c_str(), &end);
  return !cell.empty() && *end == '\0' && cell.find('.') != std::string::npos ? fmt::format("{:.6g}", value) : cell;
}

// Where the element at indices `at`, along the dimensions `names`, lies in a variable that may lack some of them (its value
// then repeats); -1 when it has a dimension that they do not.
std::int64_t place_in(const Variable& variable, const std::vector<std::string>& names, const std::vector<std::int64_t>& at) {
  std::int64_t index = 0;
  for (std::size_t d = 0; d < variable.shape.size(); ++d) {
    const auto axis = std::find(names.begin(), names.end(), variable.dimensions[d]);
    if (axis == names.end()) return -1;
    index = index * variable.shape[d] + at[static_cast<std::size_t>(axis - names.begin())];
  }
  return index < static_cast<std::int64_t>(variable.cells.size()) ? index : -1;
}

// A group as one table: a row for each element of its widest variable, so (step, rank, phase) gives one for each triple. A
// dimension that stands in the root has no variable here, and is numbered.
TextTable tabulate(const std::vector<Variable>& variables, bool shorten) {
  const Variable& widest = *std::max_element(variables.begin(), variables.end(), [](const Variable& a, const Variable& b) {
    return a.shape.size() < b.shape.size();
  });
  const auto& names = widest.dimensions;
  std::vector<std::string> columns;
  std::vector<std::size_t> numbered;
  for (std::size_t d = 0; d < names.size(); ++d)
    if (std::none_of(variables.begin(), variables.end(), [&](const Variable& v) { return v.name == names[d]; }))
      numbered.push_back(d), columns.push_back(names[d]);
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

class Report final : public Command {
 public:
  void declare(Options& options) override {
    options.add_positional("file", files_, "the records to print");
    options.add("group", group_, "print this group only, such as ranks or train").words("NAME");
    options.add("rows", rows_, "newest rows of each table, 0 for all; csv, json and md keep all unless told").range(0, 1e9);
    options.add("format", format_, "how to print").one_of(TextTable::formats());
  }

  void check(const Launch&) override {
    if (files_.empty()) usage_error("no file given", "chorale report FILE.h5…", "the newest record is runs/latest/run.h5");
    for (const std::string& file : files_) readers_.emplace_back(file);
    for (std::size_t i = 0; i < files_.size() && !group_.empty(); ++i) require_group(files_[i], readers_[i]);
  }

  int run(Session& session) override {
    if (format_ != "text" && session.options.origin("rows") == "default") rows_ = 0;  // programs want all of them
    auto all = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < files_.size(); ++i) {
      if (format_ == "text") print_text(files_[i], readers_[i]);
      if (format_ == "json") all.push_back(as_json(files_[i], readers_[i]));
      if (format_ == "csv" || format_ == "md")
        for (const std::string& group : chosen_groups(readers_[i]))
          print_table(group, tabulate(readers_[i].variables(group, most_rows()), false));
    }
    if (format_ == "json") fmt::print("{}\n", all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }

 private:
  void require_group(const std::string& file, const Reader& reader) const {
    const auto groups = reader.groups();
    if (std::count(groups.begin(), groups.end(), path_of(group_))) return;
    usage_error(fmt::format("no group {} in this record", path_of(group_)),
                fmt::format("{} has {}", file, join(groups, ", ")),
                did_you_mean(path_of(group_), groups, "name one of these"));
  }

  static std::string path_of(const std::string& group) { return group.starts_with("/") ? group : "/" + group; }

  void print_text(const std::string& file, const Reader& reader) const {
    if (group_.empty()) {
      fmt::print("{}\n", escape_control(file));
      for (const auto& [name, value] : reader.attributes())
        fmt::print("  {:<18} {}\n", escape_control(name), escape_control(value));
    }
    for (const std::string& group : chosen_groups(reader)) {
      const auto variables = reader.variables(group, most_rows());
      const std::int64_t all = reader.rows(group);
      fmt::print("\n{}{}\n", escape_control(group), all >= 0 ? fmt::format("  ({} rows)", all) : "");
      const bool texts = std::all_of(variables.begin(), variables.end(), [](const Variable& v) { return v.shape.empty(); });
      for (const Variable& v : texts ? variables : std::vector<Variable>{})  // whole texts, such as a config file
        print_whole(v);
      if (!texts) fmt::print("{}", tabulate(variables, true).print("text"));
    }
  }

  // A table alone when one was asked for, so that a CSV reader finds its header in the first line.
  void print_table(const std::string& group, const TextTable& table) const {
    const bool alone = files_.size() == 1 && !group_.empty();
    if (!alone) fmt::print("{}{}\n", format_ == "md" ? "## " : "# ", group);
    fmt::print("{}{}", table.print(format_), alone ? "" : "\n");
  }

  static void print_whole(const Variable& variable) {
    fmt::print("{}:\n", escape_control(variable.name));
    for (const std::string& text : variable.cells)
      for (const std::string& line : split(text, '\n')) fmt::print("  {}\n", escape_control(line));
  }

  nlohmann::ordered_json as_json(const std::string& file, const Reader& reader) const {
    nlohmann::ordered_json object{{"file", file}, {"attributes", nlohmann::ordered_json::object()}};
    for (const auto& [name, value] : reader.attributes()) object["attributes"][name] = value;
    for (const std::string& group : chosen_groups(reader))
      object["groups"][group] =
          nlohmann::ordered_json::parse(tabulate(reader.variables(group, most_rows()), false).print("json"));
    return object;
  }

  std::vector<std::string> chosen_groups(const Reader& reader) const {
    if (!group_.empty()) return {path_of(group_)};
    auto groups = reader.groups();
    std::erase(groups, "/");  // the shared dimensions: the groups that use them show them
    return groups;
  }

  std::int64_t most_rows() const { return rows_ == 0 ? -1 : rows_; }

  std::vector<std::string> files_;
  std::vector<Reader> readers_;
  std::string group_, format_ = "text";
  std::int64_t rows_ = 10;
};

}  // namespace

std::unique_ptr<Command> make_report() { return std::make_unique<Report>(); }

}  // namespace chorale
