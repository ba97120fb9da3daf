// The text of `chorale report` for a record of many runs (a suite, or a benchmark of several launches). It takes about one
// screen. It has the compared configurations, the table of the runs with median and spread, and a sentence for each figure
// of the page.
#pragma once
#include <string>

#include "experiments/report/record_set.hpp"

namespace chorale::report {

bool holds_runs(const Reader& record);     // whether the record has many runs
bool holds_summary(const Reader& record);  // whether this is the record of a suite, with one row per run in /summary

// The tables that answer the question, each with its finding. They show the runs side by side; without such a table, the
// first figure with data. `columns`: the width of the screen; 0: no limit.
std::string answer_of(const RecordSet& records, std::size_t columns);

// The table of the fastest series of a benchmark, with its finding. "" if no cell has two series.
std::string fastest_of(const RecordSet& records, std::size_t columns);

// `files`: the record, and CSV files whose rows are shown together with its runs.
std::string suite_summary(const std::vector<std::string>& files, std::int64_t warm_up, const std::string& metric,
                          std::size_t columns);

}  // namespace chorale::report
