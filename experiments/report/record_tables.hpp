// Prints the groups of records as tables, for the terminal or for programs. The text format rounds values to six digits; the
// other formats keep all digits. JSON is an array with one object per file. CSV and Markdown print the name of each group,
// unless one group of one file was requested.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "experiments/report/record_set.hpp"

namespace chorale::report {

struct RecordFile {
  std::string name;
  Reader reader;
  std::vector<RecordedRun> rows = {};  // rows of CSV files, which belong to /summary (csv_rows.hpp)
};

struct WantedTables {
  std::string group;       // the group to print; "" for all
  std::int64_t rows = -1;  // number of newest rows to print per table, and of lines per string; -1 means all
  std::string format = "text";
  std::size_t columns = 0;  // the width of the screen, for text; 0 means no limit
};

std::string shortened(const std::string& cell);  // rounds a value with a decimal point to six digits

void require_group(const RecordFile& file,
                   const std::string& group);  // throws a usage error with the nearest name if there is no such group
void print_tables(std::span<const RecordFile> files, const WantedTables& wanted);

}  // namespace chorale::report
