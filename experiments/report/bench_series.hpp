// Benchmark rows that can be compared with each other. Within an operation, all rows have the same conditions: type,
// operator, root, in place or not, hot or cold cache, kind of memory. If a record mixes conditions, only the rows with the
// first combination are kept. If several launches or repetitions measured a row, their median is the row's time.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/blocks.hpp"

namespace chorale::report {

struct BenchRow {
  std::string op, name;   // op: the collective; name: "shm ring", and ranks or chunks if these differ between rows
  std::string algorithm;  // the algorithm that ran; `name` may say "auto"
  std::int64_t ranks = 0, count = 0, chunks = 1, root = 0;
  ByBlock blocks = {};  // the median seconds of each block (blocks.hpp)
  double bytes = 0, median = 0, ci_low = 0, ci_high = 0, predicted = 0, ceiling = 0, bytes_sent = 0, bytes_predicted = 0;
  std::string spread;  // says which interval ci_low to ci_high is: see spread_name
};

std::vector<BenchRow> bench_rows(const RecordSet& records);
std::size_t fewest_blocks_of(const std::vector<BenchRow>& rows);            // blocks of the row that has the fewest
std::string spreads_of(const std::vector<BenchRow>& rows);                  // the column heading for their intervals
std::vector<std::string> operations_of(const std::vector<BenchRow>& rows);  // in order of first appearance
std::vector<double> sizes_of(const std::vector<BenchRow>& rows);            // ascending

}  // namespace chorale::report
