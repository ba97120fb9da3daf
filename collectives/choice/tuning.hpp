// The tuning table lists the fastest algorithms that `chorale tune` measured on this machine. The usual algorithm is the
// algorithm that `auto` runs without a tuning table. If no algorithm was significantly faster than the usual algorithm, the
// table lists the usual algorithm. `auto` chooses algorithms from this table. The table is a small JSON file with one line
// per measured case, so that users can see why an algorithm runs:
//
//   {"backend":"shm","op":"all_reduce","ranks":2,"hosts":1,"in_place":true,"bytes":4096,
//    "algorithm":"direct","chunks":1,"time_us":1.9,"runner_up":"one_shot","ratio":1.12}
//
// A line applies only to calls with the same numbers of ranks and hosts. A line without `hosts` is from an older version,
// and applies to calls on one host. The table is valid only on the machine where it was measured. Prices are in the machine
// file (src/base/machine_file.hpp); prices in tuning tables from older versions are ignored.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include <chorale/problem.hpp>

namespace chorale {

struct Tuned {
  std::string backend;
  Collective what = Collective::all_reduce;
  int ranks = 1;
  bool in_place = false;
  std::int64_t bytes = 0;  // size of the complete vector
  std::string algorithm;
  int chunks = 1;
  double seconds = 0;     // time per call: the median, or on a busy machine the lower quartile
  std::string runner_up;  // the second-fastest algorithm; "" if only one algorithm could run
  // Time of the runner-up divided by `seconds`; below 1 if the runner-up was faster, but not significantly.
  double ratio = 1;
  double ratio_low = 0, ratio_high = 0;  // bounds of `ratio`, from the intervals of both times; 0 if unknown
  int hosts = 1;

  std::string why() const;  // "1.9 µs at 4096 bytes, one_shot took 1.12 times as long in one launch (1.07 to 1.18)"
};

struct TuningTable {
  std::string machine;  // signature of the machine where the table was measured
  std::vector<Tuned> choices;
};

// A file in cache_folder(); "" if there is no such folder.
std::filesystem::path default_tuning_file();
// Throws a usage error if the file has no valid table.
TuningTable read_tuning(const std::filesystem::path& file);
TuningTable tuning_of_this_host();  // reads default_tuning_file(); the table is empty if there is no such file
TuningTable parse_tuning(const std::string& text, const std::string& file);  // error messages name `file`
std::string text_of(const TuningTable& table);
void write_tuning(const std::filesystem::path& file, const TuningTable& table);  // atomically

}  // namespace chorale
