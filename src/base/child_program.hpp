// Runs a program as a child process and waits until it ends.
//
// The child writes its output to files, or where this program writes its own. The child has no input and no blocked signals.
// The child has its own process group, so the terminal's signals reach it only if this program forwards them. The child gets
// SIGTERM if this program dies.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <chorale/clock.hpp>

namespace chorale {

struct ChildProgram {
  std::vector<std::string> words;        // the program and its arguments; PATH is searched for the program unless its name
                                         // contains a slash
  std::filesystem::path output, errors;  // files for stdout and stderr; if empty, those of this program
  std::filesystem::path folder = {};     // working folder of the child; if it is empty, the working folder of this program
  std::vector<std::string> environment;  // "NAME=value"
  std::vector<int> cpus = {};            // CPUs that the child is allowed to use; if there are none, all CPUs of this
                                         // program
};

std::vector<std::string> own_environment();
std::vector<std::string> own_variables();  // the names of Chorale's own variables in it: "CHORALE_TIMEOUT"
std::string own_executable();              // its path; to be asked early, because a new build can replace the file

struct StartedChild {
  int pid = -1;
  std::string trouble;  // why it could not be started; "" if it was started
};
StartedChild start_child(const ChildProgram& program);
// Returns the exit code of a child, or 128 plus the number of the signal that ended it. Returns nullopt while it runs.
std::optional<int> code_if_ended(int pid, const std::string& name);

struct ChildEnd {
  int code = 0;         // exit code of the child, or 128 plus the number of the signal that ended the child
  std::string trouble;  // why the child could not be started; "" if it was started
};
// While the child runs, calls `meanwhile` every 20 ms with the child's process ID. `meanwhile` can send signals to the child
// or to the child's process group.
ChildEnd run_to_the_end(const ChildProgram& program, Clock& clock, const std::function<void(int pid)>& meanwhile);

}  // namespace chorale
