#include "src/base/signals.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include "src/base/error.hpp"

namespace chorale {

void DescriptorTraits::close(int fd) noexcept { ::close(fd); }

Signals::Signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&set, signal);
  require(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0, "signals cannot be blocked");
  fd_.reset(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  require(bool(fd_), "signalfd failed with errno {}", errno);
}

std::optional<int> Signals::pending() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace chorale
