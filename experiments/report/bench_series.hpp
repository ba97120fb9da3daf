// Benchmark rows in the form that figures and verdicts use. Rows with the same question and the same size form a cell, and
// only rows of one cell are compared. A question is a benchmark case, an operation with its conditions: type, operator,
// root, ranks, hosts, groups, in place or not, hot or cold cache, kind of memory. A series is a combination of all other
// settings, such as backend and algorithm.
//
//   question                          bytes    series
//   all_reduce, 2 ranks                1024    shm ring │ shm direct │ mpi ring
//   all_reduce, 4 ranks                1024    shm ring │ shm direct │ mpi ring         another cell: 2 ranks do less work
//
// Names state only the settings that differ between the rows. If several launches or repetitions measured a row, the time of
// the row is the median over these launches or repetitions.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/blocks.hpp"

namespace chorale::report {

struct BenchRow {
  std::string op;         // the collective
  std::string question;   // the collective, and the conditions in which its rows differ: "all_reduce of bf16, 4 ranks"
  std::string name;       // the series: "shm ring", and chunks or settings if these differ between rows
  std::string algorithm;  // the algorithm that ran; `name` can say "auto"
  std::int64_t ranks = 0, count = 0, chunks = 1, root = 0;
  ByBlock blocks = {};  // the median time of each block in seconds (blocks.hpp)
  double bytes = 0, median = 0, ci_low = 0, ci_high = 0, predicted = 0, ceiling = 0, bytes_sent = 0, bytes_predicted = 0;
  std::string spread;  // name of the interval from ci_low to ci_high: see spread_name
};

std::vector<BenchRow> bench_rows(const RecordSet& records);

// The settings that distinguish benchmarks but are not columns of /series: ", compare-calls false".
std::string other_settings(const RecordedRun& run);

std::size_t fewest_blocks_of(const std::vector<BenchRow>& rows);           // minimum over the rows
std::string spreads_of(const std::vector<BenchRow>& rows);                 // column heading for the intervals of the rows
std::vector<std::string> questions_of(const std::vector<BenchRow>& rows);  // sorted by operation, then by ranks
std::vector<double> sizes_of(const std::vector<BenchRow>& rows);           // ascending

}  // namespace chorale::report
