#include "experiments/compare/answer.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "experiments/common/advice.hpp"
#include "experiments/compare/rounds.hpp"
#include "experiments/report/disturbed.hpp"
#include "experiments/report/page.hpp"
#include "experiments/report/suite_summary.hpp"
#include "src/base/screen.hpp"
#include "src/base/text.hpp"
#include "src/record/run_folder.hpp"

namespace chorale::compare {

std::string resume_command(std::int64_t ranks, const RunRecord& record) {
  return command_on(ranks, "compare --resume " + record.folder.string());
}

void finish(RunRecord& record, const Suite& suite, const SuiteSummary& summary, const End& end) {
  record.recorder->finish(end.stopped ? "stopped" : "ok");
  if (end.stopped) {  // printed first, because the launcher can kill the ranks before the figures are made
    fmt::print("stopped; to run the rest: {}\n\n", resume_command(end.ranks, record));
    std::fflush(stdout);
  }
  const std::filesystem::path file = record.recorder->file();
  if (!suite.question.empty()) fmt::print("{}\n", suite.question);
  const report::RecordSet records = report::read_records({file.string()});
  fmt::print("{}", report::answer_of(records, screen_columns()));
  for (const std::string& trouble : summary.troubles()) fmt::print("{}\n", trouble);
  if (const std::string disturbance = report::disturbance_of(records); !disturbance.empty())
    fmt::print("{}", paragraph("", disturbance, screen_columns()));
  write_file(record.folder / "report.html", report::page_of(records));
  fmt::print("\nthe figures: {}\nthe record:  {}\n", (record.folder / "report.html").string(), file.string());
  if (end.no_time_from > 0)
    fmt::print("{} of {} {}s were run: another would have exceeded the budget of {}; to run the others: {} --budget 0\n",
               end.no_time_from - 1, end.rounds, name_of_round(suite), human_seconds(end.budget),
               resume_command(end.ranks, record));
}

}  // namespace chorale::compare
