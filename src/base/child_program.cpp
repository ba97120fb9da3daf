#include "src/base/child_program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "src/base/descriptor.hpp"
#include "src/base/error.hpp"

extern char** environ;

namespace chorale {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> all;
  for (const std::string& word : words) all.push_back(const_cast<char*>(word.c_str()));  // exec does not modify the words
  all.push_back(nullptr);
  return all;
}

// Runs in the child between fork and exec. Allocates no memory, because another thread might have held the allocator's lock
// during the fork. Returns only if an error occurred.
void become(const ChildProgram& program, char** words, char** environment, const cpu_set_t* cpus, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) raise(SIGTERM);  // the parent died before prctl()
  const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC;  // output and errors can be one file
  const int output = program.output.empty() ? STDOUT_FILENO : open(program.output.c_str(), flags, 0666);
  const int errors = program.errors.empty() ? STDERR_FILENO : open(program.errors.c_str(), flags, 0666);
  if (input < 0 || output < 0 || errors < 0) return;
  if (dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 || dup2(errors, STDERR_FILENO) < 0) return;
  if (cpus) sched_setaffinity(0, sizeof *cpus, cpus);
  if (!program.folder.empty() && chdir(program.folder.c_str()) != 0) return;
  execvpe(words[0], words, environment);
}

}  // namespace

std::vector<std::string> own_environment() {
  std::vector<std::string> all;
  for (char** variable = environ; *variable; ++variable) all.emplace_back(*variable);
  return all;
}

std::vector<std::string> own_variables() {
  std::vector<std::string> names;
  for (const std::string& variable : own_environment())
    if (variable.starts_with("CHORALE_")) names.push_back(variable.substr(0, variable.find('=')));
  return names;
}

std::string own_executable() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

StartedChild start_child(const ChildProgram& program) {
  std::vector<char*> words = pointers(program.words), environment = pointers(program.environment);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const int cpu : program.cpus) CPU_SET(static_cast<std::size_t>(cpu), &cpus);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {.trouble = fmt::format("pipe: {}", std::strerror(errno))};
  const Descriptor reads(ends[0]);
  Descriptor writes(ends[1]);
  const pid_t parent = getpid(), child = fork();
  if (child < 0) return {.trouble = fmt::format("fork: {}", std::strerror(errno))};
  if (child == 0) {
    close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);  // the program must not inherit MPI's connections
    become(program, words.data(), environment.data(), program.cpus.empty() ? nullptr : &cpus, parent);
    const int why = errno;
    [[maybe_unused]] const auto told = write(writes.get(), &why, sizeof why);
    _exit(127);
  }
  writes = Descriptor();
  int why = 0;
  if (read(reads.get(), &why, sizeof why) != sizeof why) return {.pid = child};  // the pipe closes when the program starts
  waitpid(child, nullptr, 0);
  return {.trouble = std::strerror(why)};
}

std::optional<int> code_if_ended(int pid, const std::string& name) {
  int status = 0;
  const pid_t ended = waitpid(pid, &status, WNOHANG);
  if (ended == 0) return std::nullopt;
  if (ended < 0)
    throw Error(Exit::runtime, "the exit status of a child process is unknown",
                fmt::format("{}: waitpid: {}", name, std::strerror(errno)),
                "SIGCHLD must not be ignored when this program starts");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

ChildEnd run_to_the_end(const ChildProgram& program, Clock& clock, const std::function<void(int pid)>& meanwhile) {
  const StartedChild child = start_child(program);
  if (child.pid < 0) return {.trouble = child.trouble};
  std::optional<int> code;
  while (!(code = code_if_ended(child.pid, program.words[0]))) {
    meanwhile(child.pid);
    clock.sleep(0.02);
  }
  return {.code = *code};
}

}  // namespace chorale
