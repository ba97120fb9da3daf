// Fuzz targets: functions that must survive any input, even a hostile or damaged one. A target may throw an Error, which
// refuses the input. Any other failure is a defect: a crash, a different exception, an endless loop, unbounded memory, or a
// sanitizer report.
//
//                              ┌─ tests/fuzz/trials.cpp    mutations of the corpus in child processes, in tests_run
//   tests/fuzz/TARGET.cpp ─────┤
//   + tests/fuzz/corpus/TARGET └─ tests/fuzz/fuzzer.cpp    libFuzzer: make fuzz MINUTES=2 TARGET=toml
//
// To add a target, write its file, add its row to targets.cpp, and put a few good inputs into its corpus. A target reads and
// writes only the current folder, which is empty at its first call.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace chorale::test {

struct Target {
  const char* name;     // also its folder in tests/fuzz/corpus
  const char* promise;  // of docs/reliability.md: R13 for configurations, R14 for other files
  void (*run)(std::string_view input);
  // Makes good inputs that no text file can hold, in the current folder; nullptr: all good inputs are in the corpus.
  std::vector<std::string> (*samples)() = nullptr;
};
const std::vector<Target>& targets();
const Target& target_named(const std::string& name);

// The files of the target's corpus and its samples. `root`: the root of the repository.
std::vector<std::string> good_inputs(const Target& target, const std::filesystem::path& root);

// Reads the options of a command as the program does, and checks them, but does not run the command.
void check_command(const std::string& command, const std::vector<std::string>& arguments);

}  // namespace chorale::test
