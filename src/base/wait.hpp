// wait_until: how Chorale waits for other ranks. (Set-up also waits in polling_barrier and inside MPI, see mpi.hpp.) It
// polls the condition, which may itself make progress. Between polls it spins, then yields, then sleeps, so that eight ranks
// on two cores still make progress. A deadline turns a hang into an error that names what was waited for. A wait also ends
// with an error if it makes no progress for 120 s after a request to stop (signals.hpp). The code that normally reads such
// requests cannot read them while it waits here. The clock is injected; failure detectors use `on_idle`.
//
//   polls     0 ……………… spins ……………… spins + yields ………………… deadline
//             busy-wait    sched_yield         sleep 50 → 200 µs        Error, exit 4
//
// Cost: a spin costs one poll and one pause; the clock is first read after the spins.
#pragma once
#include <cstdint>
#include <functional>
#include <source_location>

#include <chorale/clock.hpp>

namespace chorale {

struct Waiting {
  Clock& clock;
  double timeout_seconds = 60;
  int spins = 2000;  // set this to 0 with more ranks than cores, because a spinning rank delays the peer it waits for
  int yields = 200;
  std::function<void()> on_idle = {};  // called at each sleep; may throw to end the wait (a peer died)
  // Returns a counter of the progress that polling has made. When the counter changes, the wait yields again and gets a new
  // deadline.
  std::function<std::uint64_t()> moved = {};
  // Returns a counter that a watcher of this wait, such as the guard, advances. When it changes, the wait gets a new
  // deadline.
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

// Yields or sleeps once, and throws when the deadline has passed.
class Idler {
 public:
  Idler(const Waiting& how, const char* what, std::source_location where) : how_(how), what_(what), where_(where) {}
  void idle();

 private:
  const Waiting& how_;
  const char* what_;
  std::source_location where_;
  double started_ = -1, asked_ = -1;  // when the wait began or anything last moved; when a request to stop was first seen
  int idles_ = 0;
  std::uint64_t moved_ = 0, watched_ = 0;
};

}  // namespace detail

// The time limit of waits: CHORALE_TIMEOUT if it is set, otherwise `seconds`. A limit of 0 means infinite. Throws a usage
// error if the variable is not a number.
double time_limit(double seconds);

template <class Condition>
void wait_until(Condition&& done, const Waiting& how, const char* what,
                std::source_location where = std::source_location::current()) {
  for (int i = 0; i < how.spins; ++i) {
    if (done()) return;
    detail::pause_cpu();
  }
  detail::Idler idler(how, what, where);
  while (!done()) idler.idle();
}

}  // namespace chorale
