#include "experiments/report/csv_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "experiments/common/each.hpp"
#include "experiments/common/parse_number.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

using Cells = std::vector<std::string>;

[[noreturn]] void refuse(const std::string& file, std::size_t line, const std::string& why) {
  usage_error("a CSV file cannot be read as rows of a comparison", fmt::format("{}:{}: {}", file, line, why),
              "its first line must name the columns label and tokens/s; each further line is one run");
}

// Splits a line into cells. A cell in double quotes can contain commas, and a double quote in it is written twice.
Cells cells_of(const std::string& line) {
  Cells cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool is_quote = line[i] == '"';
    if (is_quote && quoted && i + 1 < line.size() && line[i + 1] == '"')
      cells.back() += line[i++];
    else if (is_quote)
      quoted = !quoted;
    else if (line[i] == ',' && !quoted)
      cells.emplace_back();
    else
      cells.back() += line[i];
  }
  for (std::string& cell : cells) cell = trim(cell);
  return cells;
}

// Converts a title to the name of a column: "tokens_per_s" and "Tokens/s" are the same column.
std::string column_name(const std::string& title) {
  const std::string name = replace_all(lower(title), '_', ' ');
  return name == "tokens per s" ? "tokens/s" : name == "eval loss" ? "held-out loss" : name;
}

void add_table(RecordedRun& run, const std::string& group, const std::string& name, const std::string& cell) {
  run.tables[group] = {{.name = "step", .dimensions = {"step"}, .shape = {1}, .cells = {"1"}},
                       {.name = name, .dimensions = {"step"}, .shape = {1}, .cells = {cell}}};
}

}  // namespace

bool is_csv(const std::string& file) { return std::filesystem::path(file).extension() == ".csv"; }

std::vector<std::string> with_rows_beside(const std::vector<std::string>& files) {
  std::vector<std::string> all;
  for (const std::string& file : files) {
    all.push_back(file);
    const std::filesystem::path beside = std::filesystem::path(file).parent_path() / rows_beside;
    const auto is_same = [&](const std::string& other) {
      std::error_code error;
      return std::filesystem::equivalent(other, beside, error);
    };
    if (std::filesystem::is_regular_file(beside) && std::ranges::none_of(files, is_same) &&
        std::ranges::none_of(all, is_same))
      all.push_back(beside.string());
  }
  return all;
}

std::vector<RecordedRun> runs_in_csv(const std::string& file) {
  const auto text = contents_of(file);
  if (!text) usage_error("a CSV file cannot be read", file, "check the path");
  std::vector<RecordedRun> runs;
  Cells titles;
  std::size_t number = 0;
  for (std::string line : split(*text, '\n')) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (trim(line).empty()) continue;
    const Cells cells = cells_of(line);
    if (titles.empty()) {
      titles = each(cells, column_name);
      for (const char* needed : {"label", "tokens/s"})
        if (!std::ranges::count(titles, needed)) refuse(file, number, fmt::format("there is no column {}", needed));
      continue;
    }
    const auto cell = [&](const char* title) {
      const auto column = static_cast<std::size_t>(std::ranges::find(titles, title) - titles.begin());
      return column < cells.size() ? cells[column] : std::string();
    };
    const auto positive = [&](const char* title) {
      const std::string& text_of = cell(title);
      const auto value = parse_number(text_of);
      if (!value || !std::isfinite(*value) || *value <= 0)
        refuse(file, number, fmt::format("{} must be a positive number, not \"{}\"", title, text_of));
      return text_of;
    };
    if (cells.size() > titles.size())
      refuse(file, number,
             fmt::format("{} cells, but {} columns: cells with commas need quotes", cells.size(), titles.size()));
    if (cell("label").empty()) refuse(file, number, "the label is empty");
    RecordedRun run{
        .id = fmt::format("{}:{}", file, number), .label = cell("label"), .command = another_program, .status = "ok"};
    run.launch = run.block = run.id;
    add_table(run, "train", "tokens_per_s", positive("tokens/s"));
    if (!cell("held-out loss").empty()) add_table(run, "eval", "loss", positive("held-out loss"));
    if (!cell("ranks").empty()) run.attributes["jobsize"] = positive("ranks");
    runs.push_back(std::move(run));
  }
  if (runs.empty()) refuse(file, std::max<std::size_t>(1, number), "it has no rows");
  return runs;
}

void append_to_summary(std::vector<Variable>& summary, const std::vector<RecordedRun>& rows) {
  if (rows.empty() || summary.empty()) return;
  const std::string dimension = summary.front().dimensions.at(0);
  const auto before = static_cast<std::size_t>(summary.front().shape.at(0));
  for (const char* needed : {"tokens_per_s", "eval_loss"})  // a suite of benchmarks has neither column
    if (std::ranges::find(summary, needed, &Variable::name) == summary.end())
      summary.push_back(
          {needed, "1", {dimension}, {static_cast<std::int64_t>(before)}, std::vector<std::string>(before, "nan")});
  std::map<std::string, int> repetitions;  // by label
  for (const RecordedRun& run : rows) {
    const std::string repetition = fmt::format("{}", ++repetitions[run.label]);
    const auto last = [&](const char* group, const char* name) {
      const std::vector<std::string> cells = run.group(group).words(name);
      return cells.empty() ? "nan" : cells.back();
    };
    const std::string ranks = run.attribute("jobsize");
    const std::map<std::string, std::string> known{{"id", run.label + "-r" + repetition},
                                                   {"command", run.command},
                                                   {"repetition", repetition},
                                                   {"tokens_per_s", last("train", "tokens_per_s")},
                                                   {"eval_loss", last("eval", "loss")},
                                                   {"ranks", ranks.empty() ? "nan" : ranks},
                                                   {"status", run.status}};
    for (Variable& column : summary) {
      const auto cell = known.find(column.name);
      const bool is_number = !column.units.empty();
      column.cells.push_back(cell != known.end() ? cell->second : is_number ? "nan" : "");
      ++column.shape.at(0);
    }
  }
}

}  // namespace chorale::report
