#include "src/base/launcher.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "src/base/built.hpp"
#include "src/base/error.hpp"
#include "src/base/mpi.hpp"
#include "src/base/text.hpp"

extern char** environ;

namespace chorale {
namespace {

// A child process gets files for its output, no input and no blocked signals.
// It has its own process group, so the terminal's signals reach it only if this program forwards them.
class Inheritance {
 public:
  Inheritance(const std::filesystem::path& output, const std::filesystem::path& errors) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files_, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    posix_spawn_file_actions_addopen(&files_, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
  ~Inheritance() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  Inheritance(const Inheritance&) = delete;
  Inheritance& operator=(const Inheritance&) = delete;

  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

}  // namespace

Launcher::Launcher(const Environment& environment) {
  const std::string named = environment("MPIRUN").value_or("");
  for (const std::string& word : split(trim(named).empty() ? built("mpirun") : named, ' '))
    if (!word.empty()) words_.push_back(word);
  if (words_.size() > 1 || mpi::library_name().find("Open MPI") == std::string::npos) return;
  if (geteuid() == 0) words_.push_back("--allow-run-as-root");
  for (const char* word : {"--bind-to", "none", "--map-by", "slot:OVERSUBSCRIBE"}) words_.push_back(word);
}

std::vector<std::string> Launcher::command(std::int64_t ranks, const std::vector<std::string>& program) const {
  std::vector<std::string> words = words_;
  words.insert(words.end(), {"-n", fmt::format("{}", ranks)});
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

int Launcher::run(const std::vector<std::string>& command, const std::filesystem::path& output,
                  const std::filesystem::path& errors, Clock& clock, const std::function<void(int pid)>& meanwhile) const {
  const Inheritance inheritance(output, errors);
  std::vector<char*> words;
  // posix_spawnp does not change the words.
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t child = 0;
  if (const int why = posix_spawnp(&child, words[0], inheritance.files(), inheritance.attributes(), words.data(), environ))
    usage_error("the launcher of the ranks cannot be started",
                fmt::format("{}: {}; this program was built with {}", command[0], std::strerror(why), mpi::library_name()),
                "install that MPI's launcher (make setup does), or name another: MPIRUN=\"srun --mpi=pmix\" chorale …");
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
    meanwhile(child);
    clock.sleep(0.02);
  }
  if (ended < 0)
    throw Error(Exit::runtime, "the exit status of the ranks is unknown", fmt::format("waitpid: {}", std::strerror(errno)),
                "SIGCHLD must not be ignored when this program starts");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace chorale
