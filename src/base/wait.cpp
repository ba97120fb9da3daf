#include "src/base/wait.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "src/base/error.hpp"
#include "src/base/progress_hook.hpp"

namespace chorale {

double time_limit(double seconds) {
  const char* const said = std::getenv("CHORALE_TIMEOUT");
  char* end = nullptr;
  const double limit = said ? std::strtod(said, &end) : seconds;
  if ((said && (end == said || *end)) || !(limit >= 0))
    usage_error("the time limit of the collectives is not a number of seconds",
                said ? fmt::format("CHORALE_TIMEOUT={}", said) : fmt::format("timeout_seconds = {}", seconds),
                "set it to more seconds than the longest pause between two calls of a rank, such as 3600; 0 means no limit");
  return limit == 0 ? std::numeric_limits<double>::infinity() : limit;
}

namespace detail {
namespace {

// Returns a pending request to stop, which is a blocked signal (signals.hpp) that has not been read yet. Returns 0 if there
// is no such request.
int unread_request_to_stop() {
  sigset_t unread;
  sigpending(&unread);
  for (const int signal : {SIGTERM, SIGINT})
    if (sigismember(&unread, signal) == 1) return signal;
  return 0;
}

}  // namespace

void Idler::idle() {
  // longest_sleep limits each sleep. Ranks that share a core often wait for each other, so a sleeping rank delays every rank
  // that waits for it. stop_seconds should exceed the duration of a training step.
  // most_spins ends the spins on a clock that stands still, such as a VirtualClock.
  constexpr int most_spins = 1'000'000;
  constexpr double first_sleep = 50e-6, longest_sleep = 200e-6, stop_seconds = 120;
  if (const std::uint64_t moved = how_.moved ? how_.moved() : moved_; moved != moved_) {
    moved_ = moved;
    started_ = moved_at_ = asked_ = -1;
    spins_ = idles_ = 0;
  }
  if (const std::uint64_t watched = how_.watched ? how_.watched() : watched_; watched != watched_) {
    watched_ = watched;
    started_ = -1;
  }
  const double now = how_.clock.seconds();
  if (started_ < 0) started_ = now;
  if (now - started_ >= how_.timeout_seconds)
    throw Error(Exit::watchdog, fmt::format("waited too long for {}", what_),
                fmt::format("{:.1f} s passed, the limit is {:.1f} s", now - started_, how_.timeout_seconds), how_.fix,
                where_);
  if (moved_at_ < 0) moved_at_ = now;
  if (spins_ < most_spins && now - moved_at_ < how_.spin_seconds) {
    ++spins_;
    run_progress_hooks();
    return pause_cpu();
  }
  if (idles_++ < how_.yields) {
    sched_yield();
    return;
  }
  run_progress_hooks();
  if (how_.on_idle) how_.on_idle();
  if (const int signal = unread_request_to_stop()) {
    if (asked_ < 0) asked_ = now;
    if (now - asked_ >= stop_seconds)
      throw Error(Exit::watchdog, fmt::format("asked to stop while waiting for {}", what_),
                  fmt::format("{} was received, and nothing has moved for {:.1f} s since", strsignal(signal), now - asked_),
                  "this rank's memory is lost; resume from the newest checkpoint", where_);
  }
  how_.clock.sleep(std::min(longest_sleep, first_sleep * (idles_ - how_.yields)));
}

}  // namespace detail
}  // namespace chorale
