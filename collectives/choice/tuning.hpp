// The tuning table: the fastest algorithms that `chorale tune` measured on this machine. If no algorithm was faster than the
// usual one by more than noise, the table has the usual one. `auto` chooses algorithms from this table. The table is a small
// JSON file with one line per measured case, so that users can read why an algorithm runs:
//
//   {"backend":"shm","op":"all_reduce","ranks":2,"hosts":1,"in_place":true,"bytes":4096,
//    "algorithm":"direct","chunks":1,"time_us":1.9,"runner_up":"one_shot","ratio":1.12}
//
// A line applies to calls on its numbers of ranks and hosts. A line without `hosts` is from an older version, and applies to
// calls on one host. The table is valid only on the machine where it was measured. Prices are in the machine file
// (src/base/machine_file.hpp); prices in tables from older versions are ignored.
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
  std::int64_t bytes = 0;  // of the whole vector
  std::string algorithm;
  int chunks = 1;
  double seconds = 0;     // time of a call: the median, or the lower quartile on a busy machine
  std::string runner_up;  // the fastest of the other algorithms; "" if no other could run
  double ratio = 1;       // the runner-up's time divided by `seconds`; below 1 if the runner-up's lead may be noise
  double ratio_low = 0, ratio_high = 0;  // bounds of `ratio`, from the intervals of both times; 0 in older tables
  int hosts = 1;

  std::string why() const;  // "1.9 µs at 4096 bytes, one_shot took 1.12 times as long in one launch (1.07 to 1.18)"
};

struct TuningTable {
  std::string machine;  // the machine on which it was measured
  std::vector<Tuned> choices;
};

std::filesystem::path default_tuning_file();                                 // in cache_folder(); "" without such a folder
TuningTable read_tuning(const std::filesystem::path& file);                  // a usage error if it is not a tuning table
TuningTable parse_tuning(const std::string& text, const std::string& file);  // `file` is named in errors
std::string text_of(const TuningTable& table);
void write_tuning(const std::filesystem::path& file, const TuningTable& table);  // atomically

}  // namespace chorale
