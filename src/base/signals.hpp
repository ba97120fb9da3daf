// Requests to stop, read as data. While an object of this class lives, SIGTERM, SIGINT and SIGUSR1 are blocked and
// collected through a signalfd. So no signal handler or global flag is needed, and no write to a record is interrupted.
// Long commands poll it. Create it before MPI and before any thread, so that both inherit the signal mask.
#pragma once
#include <csignal>
#include <optional>

#include "src/base/descriptor.hpp"

namespace chorale {

class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  std::optional<int> pending();  // the next signal received, if any; never waits

 private:
  sigset_t before_;
  Descriptor fd_;
};

}  // namespace chorale
