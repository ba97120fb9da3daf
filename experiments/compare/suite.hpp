// A suite: which runs are to be compared. Adding one is adding a file to experiments/.
//
//   question = "Which strategy trains fastest on 4 ranks?"      printed above the table, and on the report
//   ranks = 4                                                   ranks of each run, unless it sets its own; default: all
//   repetitions = 6                                             of every run, in turns and in an order drawn anew each time
//   warm-up = 2                                                 steps of each run that are recorded but left out of speeds
//
//   [[runs]]                            as many of these as there are kinds of run
//   command = "train"                   or another that records: bench
//   preset = "nano"                     the command's own settings, the same in all of these runs …
//   vary.layout = ["dp4", "tp4"]        … and those that differ: every combination is a run
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "src/base/options.hpp"

namespace chorale::compare {

struct SuiteRun {
  std::string name;      // "dp4-shm": of what differs, unlike any other's
  std::string command;   // "train"
  std::size_t line = 0;  // of its [[runs]]
  int ranks = 0;         // 0: all
  std::vector<Setting> settings;
};

struct Suite {
  std::filesystem::path file;
  std::string text;  // as it stands in the file
  std::string question;
  std::int64_t ranks = 0, repetitions = 1, warm_up = -1;  // −1: as the report sees fit
  std::vector<SuiteRun> runs;
  std::vector<std::string> varied;  // the settings that differ between runs, in the order of the file
};

// What is wrong in a file is gathered, and said at once.
struct Mistake {
  std::size_t line = 0;
  std::string text;
  auto operator<=>(const Mistake&) const = default;
};
void refuse_mistakes(const Suite& suite, std::vector<Mistake> mistakes);  // a usage error, if there are any

// What of it is sound. `file` is the name that mistakes and origins have.
Suite parse_suite(const std::filesystem::path& file, const std::string& text, std::vector<Mistake>& mistakes);
Suite read_suite(const std::filesystem::path& file, std::vector<Mistake>& mistakes);

}  // namespace chorale::compare
