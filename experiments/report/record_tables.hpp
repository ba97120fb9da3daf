// The groups of records as tables on the terminal, or for programs. Text cells keep six digits, the other formats keep them
// all. JSON is an array with one object a file; CSV and Markdown name each group, unless one was asked for.
#pragma once
#include <string>
#include <vector>

#include "src/record/reader.hpp"

namespace chorale::report {

struct RecordFile {
  std::string name;
  Reader reader;
};

struct Wanted {
  std::string group;       // alone; "" for all
  std::int64_t rows = -1;  // the newest; -1 for all
  std::string format = "text";
};

void require_group(const RecordFile& file,
                   const std::string& group);  // a usage error, with the nearest, where it is not there
void print_tables(const std::vector<RecordFile>& files, const Wanted& wanted);

}  // namespace chorale::report
