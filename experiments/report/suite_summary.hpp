// The text of `chorale report` for a record of many runs (a suite, or a benchmark of several launches). The text takes about
// one screen. The text names the compared configurations, shows the table of the runs with medians and spreads, and
// summarizes each figure of the page in one sentence.
#pragma once
#include <string>

#include "experiments/report/record_set.hpp"

namespace chorale::report {

bool holds_runs(const Reader& record);     // whether the record has many runs
bool holds_summary(const Reader& record);  // whether this is the record of a suite, with one row per run in /summary

// Returns the tables that answer the suite's question, each with its finding. These tables show the runs side by side. If
// there is no such table, returns the first figure with data. `columns`: the width of the screen; 0 means no limit.
std::string answer_of(const RecordSet& records, std::size_t columns);

// Returns the table of the fastest series (backend and algorithm) of a benchmark, with its finding. Returns "" if no cell of
// the table has two series.
std::string fastest_of(const RecordSet& records, std::size_t columns);

// `files`: the record, and CSV files. The rows of the CSV files are shown together with the runs of the record.
std::string suite_summary(const std::vector<std::string>& files, std::int64_t warm_up, const std::string& metric,
                          std::size_t columns);

}  // namespace chorale::report
