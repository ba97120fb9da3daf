// Benchmark rows, as figures and verdicts compare them. Only rows of the same cell are compared: those with the same
// question and the same size. A question is an operation with its conditions: type, operator, root, ranks, hosts, in place
// or not, hot or cold cache, kind of memory. Everything else, such as the backend and the algorithm, distinguishes series.
//
//   question                          bytes    series
//   all_reduce, 2 ranks                1024    shm ring │ shm direct │ mpi ring
//   all_reduce, 4 ranks                1024    shm ring │ shm direct │ mpi ring         its own cell: 2 ranks do less work
//
// Names state only what differs between the rows. If several launches or repetitions measured a row, their median is the
// row's time.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/blocks.hpp"

namespace chorale::report {

struct BenchRow {
  std::string op;         // the collective
  std::string question;   // the collective, and the conditions in which its rows differ: "all_reduce of bf16, 4 ranks"
  std::string name;       // the series: "shm ring", and chunks or settings if these differ between rows
  std::string algorithm;  // the algorithm that ran; `name` may say "auto"
  std::int64_t ranks = 0, count = 0, chunks = 1, root = 0;
  ByBlock blocks = {};  // the median seconds of each block (blocks.hpp)
  double bytes = 0, median = 0, ci_low = 0, ci_high = 0, predicted = 0, ceiling = 0, bytes_sent = 0, bytes_predicted = 0;
  std::string spread;  // says which interval ci_low to ci_high is: see spread_name
};

std::vector<BenchRow> bench_rows(const RecordSet& records);

// The settings that tell benchmarks apart and that no column of /series states: ", compare-calls false".
std::string other_settings(const RecordedRun& run);

std::size_t fewest_blocks_of(const std::vector<BenchRow>& rows);           // blocks of the row that has the fewest
std::string spreads_of(const std::vector<BenchRow>& rows);                 // the column heading for their intervals
std::vector<std::string> questions_of(const std::vector<BenchRow>& rows);  // by operation, then ranks
std::vector<double> sizes_of(const std::vector<BenchRow>& rows);           // ascending

}  // namespace chorale::report
