// Benchmark rows that can be compared: they agree in dtype, operator, root, place of the buffers and state of the cache. If
// a record mixes these conditions, each operation keeps the rows of the first combination. Repeated measurements of a row,
// by launches or repetitions, become one row with their median.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/blocks.hpp"

namespace chorale::report {

struct BenchRow {
  std::string op, name;   // name: backend, algorithm and whatever else differs between series
  std::string algorithm;  // as run
  std::int64_t ranks = 0, count = 0, chunks = 1, root = 0;
  ByBlock blocks = {};  // the median seconds of each block
  double bytes = 0, median = 0, ci_low = 0, ci_high = 0, predicted = 0, ceiling = 0, bytes_sent = 0, bytes_predicted = 0;
  std::string spread;  // what kind of interval ci_low to ci_high is
};

std::vector<BenchRow> bench_rows(const RecordSet& records);
std::size_t fewest_blocks_of(const std::vector<BenchRow>& rows);
std::string spreads_of(const std::vector<BenchRow>& rows);
std::vector<std::string> operations_of(const std::vector<BenchRow>& rows);  // in order of first appearance
std::vector<double> sizes_of(const std::vector<BenchRow>& rows);            // ascending

}  // namespace chorale::report
