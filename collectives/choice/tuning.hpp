// The tuning table lists the fastest algorithms that `chorale tune` measured on this machine. The usual algorithm is the
// algorithm that `auto` runs without a tuning table. If no algorithm was faster than the usual algorithm by more than noise,
// the table lists the usual algorithm. `auto` chooses algorithms from this table. The table is a small JSON file with one
// line per measured case, so that users can see why an algorithm runs:
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
  double seconds = 0;                    // seconds per call: the median, or the lower quartile on a busy machine
  std::string runner_up;                 // the second-best algorithm; "" if no other could run
  double ratio = 1;                      // the runner-up's seconds / `seconds`; below 1 if the runner-up's lead may be noise
  double ratio_low = 0, ratio_high = 0;  // bounds of `ratio`, from the intervals of both times; 0: unknown
  int hosts = 1;

  std::string why() const;  // "1.9 µs at 4096 bytes, one_shot took 1.12 times as long in one launch (1.07 to 1.18)"
};

struct TuningTable {
  std::string machine;  // signature of the machine where the table was measured
  std::vector<Tuned> choices;
};

std::filesystem::path default_tuning_file();                                 // in cache_folder(); "": no such folder
TuningTable read_tuning(const std::filesystem::path& file);                  // throws a usage error if it is not a table
TuningTable parse_tuning(const std::string& text, const std::string& file);  // error messages name `file`
std::string text_of(const TuningTable& table);
void write_tuning(const std::filesystem::path& file, const TuningTable& table);  // atomically

}  // namespace chorale
