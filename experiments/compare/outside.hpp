// A run of a suite can be a different program, such as a training script of PyTorch. The program prints its tokens/s, and
// the suite records this value in the run's row.
//
//   [[runs]]
//   command = "python my.py --lr {lr}"       words separated by spaces, or a list of words; no shell reads them
//   label = "my PyTorch"                     the name of the row; default: the command
//   folder = "mine"                          working folder; default: the one in which compare was started
//   environment = ["OMP_NUM_THREADS=1"]      added to the environment of compare
//   vary.lr = [0.1, 0.2]                     fills {lr}; {ranks} is the number of ranks of the run
//
// Rank 0 starts the program; the other ranks sleep. The program can use the cores of all ranks on rank 0's host. The program
// does not get the environment variables that mpirun adds, and can thus call mpirun or torchrun itself.
//
// Exactly one line of the output must contain the measured value; see number_in(). If that is not the case, or if the
// program fails, the run's row gives the reason and shows the program's last lines.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "experiments/compare/summary.hpp"

namespace chorale::compare {

// Fills the placeholders in the run's words and in its label. Appends a mistake for each placeholder without a setting, and
// for each setting without a placeholder.
void fill_placeholders(SuiteRun& run, std::vector<Mistake>& mistakes);
// Checks what can be checked before the program runs: whether the program and its folder exist.
void check_outside(const SuiteRun& run, std::vector<Mistake>& mistakes);
// A pattern must be a regular expression with exactly one capture group, which matches the number. Returns the reason why
// `pattern` is not valid, or "" if it is valid.
std::string why_no_pattern(const std::string& pattern);

// The value in the program's output. If there is no value, `trouble` gives the reason: no line has a value, several lines
// have values, or the value is not positive.
struct Measured {
  double tokens_per_s = 0;
  std::string trouble;
};
// If `pattern` is "", looks for "tokens/s" beside a number: "tokens/s = 1234.5", "tokens/s: 1,234" or "1234 tokens/s".
Measured number_in(const std::string& output, const std::string& pattern);

// Runs the program, and records its tokens/s in folder/<id of the turn>. Returns "", or the reason why there is no value.
std::string run_outside(const Repetition& turn, const std::string& pattern, const std::filesystem::path& folder,
                        const std::vector<int>& cpus, Clock& clock, const std::function<void(int pid)>& meanwhile);

}  // namespace chorale::compare
