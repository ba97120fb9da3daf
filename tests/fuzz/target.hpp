// Fuzz targets are functions that must survive any input, even hostile or damaged input. A target may refuse an input by
// throwing an Error. Any other failure is a defect: a crash, a different exception, an endless loop, unbounded memory use,
// or a sanitizer report.
//
//                              ┌─ tests/fuzz/trials.cpp    tests_run: mutations of the corpus, in child processes
//   tests/fuzz/TARGET.cpp ─────┤
//   + tests/fuzz/corpus/TARGET └─ tests/fuzz/fuzzer.cpp    libFuzzer: make fuzz MINUTES=2 TARGET=toml
//
// To add a target, write its file, add its row to targets.cpp, and put a few valid inputs into its corpus. A target reads
// and writes only the current folder, which is empty before the target's first call.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace chorale::test {

struct Target {
  const char* name;     // also the name of the target's folder in tests/fuzz/corpus
  const char* promise;  // promise in docs/reliability.md: R13 for configurations, R14 for other files
  void (*run)(std::string_view input);
  // Writes the valid inputs that cannot be text files into the current folder, and returns them. If null, all valid inputs
  // are in the corpus.
  std::vector<std::string> (*samples)() = nullptr;
};
const std::vector<Target>& targets();
const Target& target_named(const std::string& name);

// Returns the target's valid inputs: the files of its corpus, and its samples. `root` is the root of the repository.
std::vector<std::string> good_inputs(const Target& target, const std::filesystem::path& root);

// Reads and checks the options of a command as the program does, but does not run the command.
void check_command(const std::string& command, const std::vector<std::string>& arguments);

}  // namespace chorale::test
