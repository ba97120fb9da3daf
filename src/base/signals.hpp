// Requests to stop, read as data. While one of these lives, SIGTERM, SIGINT and SIGUSR1 are blocked and collected through a
// signalfd, so there is no handler, no global flag, and no moment at which a record could be cut in half. For long commands that
// poll it; make it before MPI and before any thread, since both inherit the mask.
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

  std::optional<int> pending();  // the signal that came since the last call, if any; never waits

 private:
  sigset_t before_;
  Descriptor fd_;
};

}  // namespace chorale
