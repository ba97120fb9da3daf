// wait_until is the function in which Chorale waits for other ranks. (Set-up also polls MPI, see polling_barrier.hpp.)
// wait_until polls the condition, which can itself make progress. A rank that has a core for itself first keeps this
// core busy, because a rank that yields or sleeps loses the core to any neighbor for milliseconds. If there are more
// ranks than cores, or if nothing happens for a long time, wait_until yields, then sleeps, so that eight ranks on two
// cores still make progress. A deadline turns a hang into an error that names the awaited event. A wait also ends with
// an error if it makes no progress for 120 s after a request to stop (signals.hpp). The reason is that the code that
// normally reads such requests cannot run during the wait. The clock is injected. Failure detectors use `on_idle`.
//
//   polls     0 …………… spins …………… spin_seconds …………… + yields …………………… deadline
//             busy-wait   the same, with   sched_yield         sleep 50 → 200 µs        Error, exit 4
//                         looks at the clock
//
// A spin costs one poll, and from the 64th spin also one pause of the core. The clock is first read after the spins.
#pragma once
#include <cstdint>
#include <functional>
#include <source_location>

#include <chorale/clock.hpp>

namespace chorale {

struct Waiting {
  Clock& clock;
  double timeout_seconds = 60;
  int spins = 2000;  // set to 0 if there are more ranks than cores, because a spinning rank delays the peer it waits for
  // For how long a wait spins if nothing moves, after the first `spins` polls.
  double spin_seconds = 0;
  int yields = 200;
  std::function<void()> on_idle = {};  // called at each sleep; can throw to end the wait, for example after a peer died
  // Returns a counter of the progress made by polling. If the counter changes, the wait spins again and gets a new
  // deadline.
  std::function<std::uint64_t()> moved = {};
  // Returns a counter that a watcher of this wait, such as the guard process, increments. If the counter changes, the wait
  // gets a new deadline.
  std::function<std::uint64_t()> watched = {};
  const char* fix = "a peer is slow, stopped or gone";  // the last line of the error
};

namespace detail {

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins, yields or sleeps once. Throws if the deadline has passed.
class Idler {
 public:
  Idler(const Waiting& how, const char* what, std::source_location where) : how_(how), what_(what), where_(where) {}
  void idle();

 private:
  const Waiting& how_;
  const char* what_;
  std::source_location where_;
  // `moved_at_` is the start of the wait or the time of the latest progress. `started_` is the same, or the time at which a
  // watcher last looked. `asked_` is the time at which a request to stop was first seen.
  double started_ = -1, moved_at_ = -1, asked_ = -1;
  int spins_ = 0, idles_ = 0;
  std::uint64_t moved_ = 0, watched_ = 0;
};

}  // namespace detail

// Returns the time limit of waits: CHORALE_TIMEOUT if it is set, otherwise `seconds`. A limit of 0 means infinite. Throws a
// usage error if the variable is not a number.
double time_limit(double seconds);

template <class Condition>
void wait_until(Condition&& done, const Waiting& how, const char* what,
                std::source_location where = std::source_location::current()) {
  constexpr int spins_without_pause = 64;  // a pause takes up to 150 cycles, which a fast call would wait for
  for (int i = 0; i < how.spins; ++i) {
    if (done()) return;
    if (i >= spins_without_pause) detail::pause_cpu();
  }
  detail::Idler idler(how, what, where);
  while (!done()) idler.idle();
}

}  // namespace chorale
