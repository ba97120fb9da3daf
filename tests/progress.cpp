#include "tests/progress.hpp"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace chorale::test {
namespace {

std::atomic<std::uint64_t> signs_of_life{0};
std::atomic<Doing> now_doing{Doing::nothing};

double seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace

void alive() { signs_of_life.fetch_add(1, std::memory_order_release); }

Doing doing(Doing now) {
  alive();
  return now_doing.exchange(now);
}

Watchdog::Watchdog(double limit_seconds, void (*still_moves)(), void (*give_up)(Doing what)) {
  sigset_t all, before;  // the watchdog's thread blocks all signals, so other threads get them
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([=, this] { watch(limit_seconds, still_moves, give_up); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Watchdog::watch(double limit, void (*still_moves)(), void (*give_up)(Doing what)) {
  std::unique_lock lock(mutex_);
  std::uint64_t seen = 0;
  double time = seconds(CLOCK_MONOTONIC), computed = seconds(CLOCK_PROCESS_CPUTIME_ID), quiet = 0, said = time;
  while (!wake_.wait_for(lock, std::chrono::milliseconds(250), [this] { return over_; })) {
    const double since = std::exchange(time, seconds(CLOCK_MONOTONIC));
    quiet += std::min(time - since, 1.0);  // a longer gap means that this process could not run
    const std::uint64_t signs = signs_of_life.load(std::memory_order_acquire);
    const Doing what = now_doing;
    if (std::exchange(seen, signs) != signs || what == Doing::nothing) {
      quiet = 0;
      computed = seconds(CLOCK_PROCESS_CPUTIME_ID);
      if (what == Doing::nothing || time - said < 5) continue;
      still_moves();
      said = time;
      continue;
    }
    const bool in_a_loop = what == Doing::its_case && seconds(CLOCK_PROCESS_CPUTIME_ID) - computed > limit / 2;
    if (quiet > (in_a_loop ? limit : 5 * limit)) give_up(what);
  }
}

}  // namespace chorale::test
