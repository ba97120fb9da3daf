// Detects whether the current test case of this rank still makes progress. Machines can be slow or busy, so the total time
// of a case is not limited. But a case is ended if it shows no sign of life for too long. Assertions, thread barriers and
// agreements between ranks are signs of life. A long loop without assertions, barriers or agreements must call alive().
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace chorale::test {

void alive();

// The rank's current activity. A rank that waits for other ranks shows no signs of life, so its time limit is longer.
enum class Doing { nothing, its_case, waiting };
Doing doing(Doing now);  // sets the activity and returns the previous activity

// A thread that calls give_up() if the process shows no sign of life for too long. If the CPU time of the case since its
// last sign of life exceeds half of `limit_seconds`, the case is probably in an endless loop, and the limit is
// `limit_seconds`. A rank that waits or sleeps has five times this limit, because other ranks can be slow on a busy machine.
// While there are signs of life, the thread calls still_moves() every few seconds.
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
