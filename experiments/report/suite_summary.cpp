#include "experiments/report/suite_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "experiments/report/figures/figures.hpp"
#include "experiments/report/heading.hpp"
#include "src/base/screen.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"

namespace chorale::report {
namespace {

// "4 configurations of train, 6 repetitions; 1 configuration of bench, 6 repetitions"
std::string what_was_compared(const RecordSet& records) {
  std::map<std::string, std::map<std::string, std::size_t>> repetitions;  // by command and label
  for (const RecordedRun& run : records.runs) ++repetitions[run.command][run.label];
  std::vector<std::string> parts;
  for (const auto& [command, labels] : repetitions) {
    const std::size_t most = std::ranges::max_element(labels, {}, [](const auto& one) { return one.second; })->second;
    parts.push_back(fmt::format("{} configuration{} of {}, {} repetition{}", labels.size(), labels.size() == 1 ? "" : "s",
                                command, most, most == 1 ? "" : "s"));
  }
  return join(parts, "; ");
}

// Lists the repetitions that failed, with the reason: "tp8-r1: …". Also gives the number of repetitions that have not run.
std::string missing_in(const Reader& record, std::size_t columns) {
  if (!holds_summary(record)) return "";
  const RecordGroup summary(record.variables("/summary"), by_rule);
  const std::vector<std::string> ids = summary.words("id"), statuses = summary.words("status");
  std::string out;
  std::size_t waiting = 0;
  for (std::size_t run = 0; run < std::min(ids.size(), statuses.size()); ++run)
    if (statuses[run] == "waiting")
      ++waiting;
    else if (statuses[run] != "ok")
      out += paragraph("  ", fmt::format("{}: {}", ids[run], statuses[run]), columns);
  if (waiting > 0) out += fmt::format("{} of {} runs ha{} not run\n", waiting, ids.size(), waiting == 1 ? "s" : "ve");
  return out;
}

struct FiguresInText {
  std::string tables;    // each table with its finding
  std::string findings;  // the findings of the other figures, one sentence each
};

std::string table_with_finding(const Figure& figure, std::size_t columns) {
  return figure.numbers.print("text", columns) + paragraph("", figure.finding, columns);
}

FiguresInText figures_in_text(const RecordSet& records, std::size_t columns) {
  FiguresInText text;
  for (const FigureRow& row : all_figures()) {
    const auto figure = row.make(records);
    if (!figure) continue;
    if (figure->numbers_first || text.tables.empty())
      text.tables += "\n" + table_with_finding(*figure, columns);
    else
      text.findings += paragraph("- ", fmt::format("{}: {}", row.title, figure->finding), columns);
  }
  return text;
}

}  // namespace

bool holds_runs(const Reader& record) {
  return std::ranges::any_of(record.groups(), [](const std::string& group) { return group.starts_with("/runs/"); });
}

bool holds_summary(const Reader& record) { return std::ranges::count(record.groups(), "/summary") > 0; }

std::string answer_of(const RecordSet& records, std::size_t columns) { return figures_in_text(records, columns).tables; }

std::string fastest_of(const RecordSet& records, std::size_t columns) {
  const auto winners =
      std::ranges::find(all_figures(), std::string("winners"), [](const FigureRow& row) { return std::string(row.name); });
  const auto figure = winners->make(records);
  return figure ? table_with_finding(*figure, columns) : "";
}

std::string suite_summary(const std::vector<std::string>& files, std::int64_t warm_up, const std::string& metric,
                          std::size_t columns) {
  const RecordSet records = read_records(files, warm_up, metric);
  const Reader& record = records.runs.at(0).source->reader;
  const std::string& file = files.at(0);
  std::string out = escape_control(file) + "\n" + trouble_of(file, record, columns);
  for (const std::string& question : records.questions)
    if (!question.empty()) out += paragraph("", question, columns);
  out += "\n" + fact("compared", what_was_compared(records), columns) + facts_of(record, columns) +
         disturbance_in(records, columns);
  const auto [tables, findings] = figures_in_text(records, columns);
  out += tables.empty() ? "\nno run has results yet\n" : tables;
  if (!findings.empty()) out += "\n" + findings;
  if (const std::string missing = missing_in(record, columns); !missing.empty()) out += "\n" + missing;
  return out + "\n" + footer_of(file, columns);
}

}  // namespace chorale::report
