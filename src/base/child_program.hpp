// Runs another program to its end, as a child process.
//
// The child gets files for its output, no input and no blocked signals. It has its own process group, so the terminal's
// signals reach it only if this program forwards them. It gets SIGTERM if this program dies.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <chorale/clock.hpp>

namespace chorale {

struct ChildProgram {
  std::vector<std::string> words;        // the program, searched in PATH unless it has a slash, and its arguments
  std::filesystem::path output, errors;  // files for stdout and stderr
  std::filesystem::path folder = {};     // its working folder; empty: this program's
  std::vector<std::string> environment;  // "NAME=value"
  std::vector<int> cpus = {};            // CPUs it may use; empty: those of this program
};

std::vector<std::string> own_environment();

struct ChildEnd {
  int code = 0;         // its exit code, or 128 plus the signal that ended it
  std::string trouble;  // why it could not be started; "" if it was
};
// `meanwhile` is called every 20 ms with the process id and may signal the process, or its group.
ChildEnd run_to_the_end(const ChildProgram& program, Clock& clock, const std::function<void(int pid)>& meanwhile);

}  // namespace chorale
