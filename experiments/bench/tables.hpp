// Prints the rows of a benchmark (series_row.hpp) for people and for programs.
//
//   all_reduce of f32, sum, 2 ranks, out of place          one table for each kind of call
//    bytes  backend  algorithm   time  calls  algbw  busbw  time /
//                    by auto       us    ± %   GB/s   GB/s     shm
//       64  shm      one_shot    0.61    3.0   0.10   0.10    1.00     rows of the same size are adjacent, and
//       64  mpi      ring        1.83   1–44   0.03   0.03    3.00     compared with the first backend or algorithm
//
// JSON has all values of every row. CSV has one table with the same values under the same names.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/bench/series_row.hpp"

namespace chorale::bench {

// `columns`: the width of the screen, which limits text only; 0 means no limit.
std::string print(const Rows& rows, const std::string& format, std::size_t columns);

bool shows_ranges(const Rows& rows);       // whether a cell of the column ± is a range: "1–44"
bool shows_predictions(const Rows& rows);  // whether a printed table has a column of predictions

bool is_beside(const Rows& rows);  // whether the rows were also measured beside products

// The file for the rows of a collective: all_reduce.csv.
std::filesystem::path table_file(const std::filesystem::path& folder, const std::string& collective);
// Writes one file for each collective, and returns the paths of the files.
std::vector<std::filesystem::path> write_tables(const Rows& rows, const std::filesystem::path& folder);

}  // namespace chorale::bench
