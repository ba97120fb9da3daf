// Detects whether this rank's case still makes progress. Machines are slow or busy, so no case has a time limit; a case
// is given up when it shows no sign of life. Assertions, thread barriers and agreements between ranks are such signs. A
// long loop without any of them calls alive().
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace chorale::test {

void alive();

// What the rank is doing. While it waits for other ranks, these have to make progress.
enum class Doing { nothing, its_case, waiting };
Doing doing(Doing now);  // returns the previous state

// A thread that gives up after `limit` seconds without a sign of life if the process computed for half of that time: it
// is caught in a loop. A rank that waits or sleeps gets five times as long, because a busy machine may not have let the
// other ranks run. While there are signs of life, still_moves is called every few seconds.
class Watchdog {
 public:
  Watchdog(double limit_seconds, void (*still_moves)(), void (*give_up)(Doing what));
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch(double limit, void (*still_moves)(), void (*give_up)(Doing what));

  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace chorale::test
