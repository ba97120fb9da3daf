// A suite lists the runs to compare. To add a suite, add a file to experiments/suites/.
//
//   question = "Which strategy trains fastest on 4 ranks?"      printed above the table and on the report
//   ranks = 4                                                   ranks of each run, unless the run sets its own; default: all
//   repetitions = 6                                             of every run; each repetition has a new random order
//   warm-up = 2                                                 first steps of each run, which are excluded from speeds
//   metric = "tokens/s"                                         the metric that ranks the runs: report/metric.hpp
//   fill-memory = "8G"                                          the largest micro-batches that fit: fill_memory.hpp
//
//   [[runs]]                            one for each kind of run
//   command = "train"                   or "bench"
//   preset = "nano"                     settings of the command that all these runs share
//   vary.layout = ["dp4", "tp4"]        settings that differ: each combination is a run
//
//   [[runs]]
//   command = "python my.py"            another program: outside.hpp
//
//   [measure]
//   pattern = "speed: (.*)"             the line in which other programs print their tokens/s
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/report/metric.hpp"
#include "src/base/options.hpp"

namespace chorale::compare {

struct OutsideProgram {
  std::vector<std::string> words;
  std::string label;                     // the name of the program's row
  std::string folder = ".";              // the program's working folder
  std::vector<std::string> environment;  // "NAME=value"
};

const Setting* find(const std::vector<Setting>& settings, const std::string& key);  // null if the key is not set

struct SuiteRun {
  std::string name;      // "dp4-shm": the varied settings; unique
  std::string command;   // "train"; for another program, its words
  std::size_t line = 0;  // number of the line in the suite's file that has the run's [[runs]]
  int ranks = 0;         // 0: all
  std::vector<Setting> settings;
  std::optional<OutsideProgram> outside = {};         // the program to run instead of a Chorale command
  std::string text_of(const std::string& key) const;  // the text of a setting; "" if the run does not set it
  bool simulated() const;                             // in virtual time: one process does the work of all ranks
  int processes(int started) const;                   // number of processes that take part
};

struct Suite {
  std::filesystem::path file;
  std::string text;  // the content of the file
  std::string question;
  std::string metric = report::by_settings;
  std::int64_t ranks = 0, repetitions = 1,  // ranks 0: all started ranks
      warm_up = -1,                         // steps; −1: by the rule in report/record_set.hpp
      fill_memory = 0;                      // bytes per rank; if it is 0, each run sets its own micro-batch size
  std::string pattern;                      // [measure] pattern; "": the default pattern
  std::vector<SuiteRun> runs;
  std::vector<std::string> varied;  // the varied settings, in the order of the file
};

// A mistake in a suite file. All mistakes of a file are collected and reported together.
struct Mistake {
  std::size_t line = 0;
  std::string text;
  auto operator<=>(const Mistake&) const = default;
};
// Throws a usage error if there are mistakes. `half_checked`: the number of runs with settings that were checked only one by
// one, not together.
void refuse_mistakes(const Suite& suite, std::vector<Mistake> mistakes, std::size_t half_checked);

// Parses a suite, and appends its mistakes to `mistakes`. Returns the valid part of the suite. Messages name the suite
// `file`.
Suite parse_suite(const std::filesystem::path& file, const std::string& text, std::vector<Mistake>& mistakes);
Suite read_suite(const std::filesystem::path& file, std::vector<Mistake>& mistakes);

}  // namespace chorale::compare
