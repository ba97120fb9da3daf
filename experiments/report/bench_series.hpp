// The rows of benchmarks that can be laid beside each other: of one type, operator, root, place of the buffers and state of
// the cache. Where a record has several, its first. What launches or repetitions measured again is one row: the median of
// theirs.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/blocks.hpp"

namespace chorale::report {

struct BenchRow {
  std::string op, name;   // name: backend, algorithm and whatever else tells series apart
  std::string algorithm;  // as run
  std::int64_t ranks = 0, count = 0, chunks = 1, root = 0;
  ByBlock blocks = {};  // seconds, the median of each
  double bytes = 0, median = 0, ci_low = 0, ci_high = 0, predicted = 0, ceiling = 0, bytes_sent = 0, bytes_predicted = 0;
  std::string spread;  // what the interval is
};

std::vector<BenchRow> bench_rows(const RecordSet& records);
std::size_t fewest_blocks_of(const std::vector<BenchRow>& rows);
std::string spreads_of(const std::vector<BenchRow>& rows);
std::vector<std::string> operations_of(const std::vector<BenchRow>& rows);  // in order
std::vector<double> sizes_of(const std::vector<BenchRow>& rows);            // from small to large

}  // namespace chorale::report
