// `chorale plan --table FILE.csv`: predicts every row of a published table, and compares it with the measurement.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/common/machine_named.hpp"
#include "experiments/common/shared_files.hpp"
#include "experiments/plan/document.hpp"
#include "experiments/plan/published_errors.hpp"
#include "experiments/plan/published_table.hpp"
#include "experiments/plan/question.hpp"
#include "experiments/plan/wording.hpp"
#include "src/base/error.hpp"
#include "src/base/progress.hpp"
#include "src/base/text.hpp"

namespace chorale::plan {
namespace {

bool belongs(const PublishedSeries& series, const PublishedTable& table) {
  return std::set(series.columns.begin(), series.columns.end()) == std::set(table.settings.begin(), table.settings.end());
}
bool belongs(const PublishedSeries& series, const System& system, const Row& row) {
  const auto gpus = row.find("gpus");
  const bool one_host = gpus == row.end() || gpus->second <= system.host.accelerators;
  return one_host ? series.one_host : series.many_hosts;
}

std::string error_in(const Wording& as, double share) {
  return as.plain() ? as.number(share) : fmt::format("{:+.1f} %", 100 * share);
}
std::string in_words(const Errors& e) {
  return fmt::format("mean {:.1f} %, median {:.1f} %, greatest {:.1f} %", 100 * e.mean, 100 * e.median, 100 * e.greatest);
}

std::string words_for_errors(const PublishedSeries& series, const std::vector<Compared>& rows) {
  std::string words = fmt::format(
      "errors: {}\n"
      "  constant tokens/s per GPU, fitted to all rows: {}\n"
      "  closed form, two constants fitted to all rows: {}\n",
      in_words(errors_of(rows)), in_words(errors_of_constant(rows)), in_words(errors_of_closed_form(rows)));
  if (const auto pair = series.fits_two_rows ? fitted_to_two(rows) : std::nullopt)
    words += fmt::format("  two rows fitted ({} and {}; products × {:.3f}, others × {:.3f}): {} of the others\n",
                         pair->first + 1, pair->second + 1, pair->products, pair->others, in_words(pair->errors));
  return words;
}

void add_series(Document& out, const PublishedSeries& series, const PublishedTable& table, const AskedPlan& asked,
                const Session& session) {
  const std::string& machine = asked.machine.empty() ? series.machine : asked.machine;
  const System system = system_named(machine);
  const Wording as(asked.format);
  std::vector<std::string> columns{"row"};
  columns.insert(columns.end(), table.settings.begin(), table.settings.end());
  for (const char* column : {"layout", "micro-batch", "predicted s", "measured s", "error"})
    columns.push_back(as.column(column));
  TextTable text(columns);
  std::vector<Compared> compared;
  Progress progress = session.progress(series.name, std::ssize(table.rows));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const Row& row = table.rows[i];
    progress.update(static_cast<std::int64_t>(i), fmt::format("row {}", i + 1));
    if (!belongs(series, system, row)) continue;
    const PredictedRow predicted = predict_row(series, system, row);
    const double measured = measured_seconds(series, row, predicted);
    std::vector<std::string> cells{std::to_string(i + 1)};
    for (const std::string& name : table.settings) cells.push_back(fmt::format("{:g}", row.at(name)));
    cells.insert(cells.end(), {predicted.layout, std::to_string(predicted.micro_batch), as.seconds(predicted.seconds)});
    const bool known = !std::isnan(measured);
    cells.insert(cells.end(),
                 {known ? as.seconds(measured) : "", known ? error_in(as, predicted.seconds / measured - 1) : ""});
    text.add(cells);
    if (known) compared.push_back({predicted, measured});
  }
  if (text.rows() == 0) return;
  out.words(fmt::format("{}, on {}\n", series.name, machine));
  out.table(series.name, text);
  if (!compared.empty()) out.words(words_for_errors(series, compared));
  out.words("\n");
}

void print_published(const AskedPlan& asked, const Session& session) {
  const PublishedTable table = read_published(asked.table);
  const std::filesystem::path assumptions = asked.assumptions_file.empty() ? shared_file("published/assumptions.toml")
                                                                           : std::filesystem::path(asked.assumptions_file);
  Document out(asked.format);
  bool any = false;
  for (const PublishedSeries& series : read_series(assumptions)) {
    if (!belongs(series, table)) continue;
    const bool measured_elsewhere = !table.measured.empty() && std::ranges::count(table.measured, series.measured) == 0;
    if (measured_elsewhere) continue;
    any = true;
    add_series(out, series, table, asked, session);
  }
  if (!any)
    usage_error("no assumptions are known for a table with these columns",
                fmt::format("{}: {}", asked.table, join(table.settings, ", ")),
                fmt::format("add a [[series]] to {} (docs/planner.md)", assumptions.string()));
  fmt::print("{}", out.print());
}

}  // namespace

Answer published_table(AskedPlan& asked) {
  return [&asked](Session& session) {
    print_published(asked, session);
    return 0;
  };
}

}  // namespace chorale::plan
