#include "src/base/wait.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "src/base/error.hpp"

namespace chorale::detail {

void Idler::idle() {
  constexpr double first_sleep = 50e-6, longest_sleep = 1e-3;
  if (const std::uint64_t moved = how_.moved ? how_.moved() : moved_; moved != moved_) {
    moved_ = moved;
    started_ = -1;
    idles_ = 0;
  }
  const double now = how_.clock.seconds();
  if (started_ < 0) started_ = now;
  if (now - started_ >= how_.timeout_seconds)
    throw Error(Exit::watchdog, fmt::format("waited too long for {}", what_),
                fmt::format("{:.1f} s passed, the limit is {:.1f} s", now - started_, how_.timeout_seconds),
                "a peer is slow, stopped or gone; see its log, or raise the time limit", where_);
  if (idles_++ < how_.yields) {
    sched_yield();
    return;
  }
  if (how_.on_idle) how_.on_idle();
  const int doublings = std::min(idles_ - how_.yields - 1, 10);
  how_.clock.sleep(std::min(longest_sleep, first_sleep * static_cast<double>(1 << doublings)));
}

}  // namespace chorale::detail
