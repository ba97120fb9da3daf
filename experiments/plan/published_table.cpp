#include "experiments/plan/published_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "experiments/common/each.hpp"
#include "src/base/error.hpp"
#include "src/base/settings.hpp"
#include "src/base/text.hpp"

namespace chorale::plan {
namespace {

enum class ColumnUse { setting, measured, ignored };
struct PublishedColumn {
  const char *name, *also;
  ColumnUse use;
  double most = 0;  // largest value of a setting, which is an integer ≥ 1
};
// The known columns. `also`: an alternative name that other papers use.
constexpr PublishedColumn columns[] = {
    {"hidden", "hidden size", ColumnUse::setting, 1e6},
    {"heads", "attention heads", ColumnUse::setting, 1e5},
    {"layers", "# layers", ColumnUse::setting, 1e5},
    {"sequence", "sequence length", ColumnUse::setting, 1e8},
    {"t", "tensor parallelism", ColumnUse::setting, 1e4},
    {"p", "pipeline parallelism", ColumnUse::setting, 1e4},
    {"d", "data parallelism", ColumnUse::setting, 1e6},
    {"gpus", "# gpus", ColumnUse::setting, 1e6},
    {"batch", "global batch", ColumnUse::setting, 1e8},
    {"sequences", "", ColumnUse::setting, 1e8},
    {"micro_batch", "micro batch", ColumnUse::setting, 1e5},
    {"micro_batches", "", ColumnUse::setting, 1e8},
    {"interleave", "", ColumnUse::setting, 1e4},
    {"billion", "parameters (billion)", ColumnUse::ignored},
    {"model_billion", "", ColumnUse::ignored},
    {"tflops_per_gpu", "", ColumnUse::measured},
    {"zero3_tflops", "", ColumnUse::measured},
    {"ptdp_tflops", "", ColumnUse::measured},
    {"full_recompute_s", "", ColumnUse::measured},
    {"sp_selective_s", "", ColumnUse::measured},
    {"step_s", "", ColumnUse::measured},
    {"iteration time (ms)", "", ColumnUse::measured},
};

std::string trimmed(const std::string& text) { return lower(trim(text)); }

double number_in(const std::string& cell, const PublishedColumn& column, const std::string& where) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  const bool number = error == std::errc() && end == cell.data() + cell.size() && value > 0 && value < 1e15;
  const bool whole = column.use != ColumnUse::setting || (value <= column.most && value == std::floor(value));
  if (!number || !whole)
    usage_error("the table has a wrong cell", fmt::format("{}: {} is \"{}\"", where, column.name, cell),
                column.use == ColumnUse::setting
                    ? fmt::format("correct the line; it is a whole number from 1 to {:g}", column.most)
                    : "correct the line; measurements are positive numbers");
  return value;
}

const PublishedColumn& column_named(const std::string& name, const std::string& where) {
  const auto is_it = [&](const PublishedColumn& c) { return name == c.name || (!name.empty() && name == c.also); };
  if (const PublishedColumn* const found = std::ranges::find_if(columns, is_it); found != std::end(columns)) return *found;
  const std::vector<std::string> names = names_of_rows(columns);
  usage_error("the table has an unknown column", fmt::format("{}: \"{}\"", where, name),
              did_you_mean(name, names, "columns are " + join(names, ", ")));
}

// Lines that begin with # are remarks. However, the first column of a table can be called "# GPUs".
bool says_nothing(const std::string& line) {
  return trimmed(line).empty() || (line.starts_with('#') && !line.starts_with("# GPUs,"));
}

}  // namespace

PublishedTable read_published(const std::filesystem::path& file) {
  PublishedTable table;
  std::vector<const PublishedColumn*> known;
  std::size_t number = 0;
  for (const std::string& line : split(config_text(file, "--table"), '\n')) {
    ++number;
    if (says_nothing(line)) continue;
    const std::vector<std::string> cells = split(line, ',');
    const std::string where = fmt::format("{}:{}", file.string(), number);
    if (known.empty()) {
      known = each(cells, [&](const std::string& cell) { return &column_named(trimmed(cell), where); });
      for (const PublishedColumn* column : known) {
        if (column->use == ColumnUse::setting) table.settings.emplace_back(column->name);
        if (column->use == ColumnUse::measured) table.measured.emplace_back(column->name);
      }
      continue;
    }
    if (cells.size() != known.size())
      usage_error("a row of the table has another number of cells than its head",
                  fmt::format("{}: {} cells, {} columns", where, cells.size(), known.size()), "correct the line");
    std::map<std::string, double> row;
    for (std::size_t i = 0; i < cells.size(); ++i) row[known[i]->name] = number_in(trimmed(cells[i]), *known[i], where);
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty())
    usage_error("the table has no rows", file.string(), "a line with the names of the columns comes before the rows");
  return table;
}

}  // namespace chorale::plan
