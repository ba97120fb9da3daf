// Signals that ask a program to stop or save. While a Signals object exists, SIGTERM, SIGINT and SIGUSR1 are blocked and
// read through a signalfd. No signal handler or global flag is needed, and no write to a record is interrupted. Long
// commands poll pending(). The object must be created before MPI starts and before any thread, so that all threads inherit
// the signal mask.
#pragma once
#include <csignal>
#include <initializer_list>
#include <optional>

#include "src/base/descriptor.hpp"
#include "src/base/guard/flight.hpp"

namespace chorale {

class Signals {
 public:
  // `more`: further signals to receive.
  explicit Signals(std::initializer_list<int> more = {});
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  void tell(Flight* flight) { flight_ = flight; }  // records requests to end in this flight recorder; null: records nothing
  std::optional<int> pending();                    // returns the next received signal, if any; never waits

 private:
  sigset_t before_;
  Descriptor fd_;
  Flight* flight_ = nullptr;
};

}  // namespace chorale
