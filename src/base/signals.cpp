#include "src/base/signals.hpp"

#include <fmt/format.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "src/base/error.hpp"

namespace chorale {

Signals::Signals(std::initializer_list<int> more) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&set, signal);
  for (const int signal : more) sigaddset(&set, signal);
  fd_.reset(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd_)
    throw Error(Exit::runtime, "cannot receive signals", fmt::format("signalfd: {}", std::strerror(errno)),
                "raise the limit of open files (ulimit -n)");
  pthread_sigmask(SIG_BLOCK, &set, &before_);
}

Signals::~Signals() {
  while (pending()) {}  // discards unread signals, so that unblocking does not deliver them
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> Signals::pending() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  if (flight_ && info.ssi_signo != SIGUSR1) flight_->asked_to_end();
  return static_cast<int>(info.ssi_signo);
}

}  // namespace chorale
