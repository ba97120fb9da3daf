#include "src/record/in_child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <new>

#include "src/base/error.hpp"

namespace chorale {
namespace {

enum Code : int { came_to_an_end, lacked_memory, threw };

[[noreturn]] void child(const std::function<void()>& work, double most_seconds) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Resets the signal handlers, because the program's own handlers would report the crash as a crash of the program.
  for (const int crash : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGXCPU}) signal(crash, SIG_DFL);
  const rlimit no_core{0, 0}, computing{static_cast<rlim_t>(std::ceil(most_seconds)), RLIM_INFINITY};
  setrlimit(RLIMIT_CORE, &no_core);
  setrlimit(RLIMIT_CPU, &computing);
  // Discards stderr, because glibc would report a corrupt heap there; the parent prints its own error.
  if (const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0) dup2(nowhere, STDERR_FILENO);
  try {
    work();
  } catch (const Error&) {
  } catch (const std::bad_alloc&) {
    _exit(lacked_memory);
  } catch (...) {
    _exit(threw);
  }
  _exit(came_to_an_end);  // skips exit handlers, because libraries must not clean up resources of the parent
}

}  // namespace

std::string end_in_child(const std::function<void()>& work, double most_seconds) {
  const pid_t started = fork();
  if (started < 0)
    throw Error(Exit::runtime, "a child process cannot be started", fmt::format("fork: {}", std::strerror(errno)),
                "raise the limit of processes (ulimit -u)");
  if (started == 0) child(work, most_seconds);
  int status = 0;
  while (waitpid(started, &status, 0) < 0)
    if (errno != EINTR)
      throw Error(Exit::runtime, "a child process cannot be awaited", fmt::format("waitpid: {}", std::strerror(errno)),
                  "let the program that starts this one not ignore SIGCHLD");
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
    return fmt::format("more than {:.0f} s of computing", most_seconds);
  if (WIFSIGNALED(status)) return strsignal(WTERMSIG(status));
  const int code = WEXITSTATUS(status);
  return code == came_to_an_end ? "" : code == lacked_memory ? "a lack of memory" : "an unexpected exception";
}

}  // namespace chorale
