#include "src/base/wait.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "src/base/error.hpp"
#include "src/base/progress.hpp"
#include "src/base/progress_hook.hpp"
#include "src/base/signals.hpp"
#include "tests/catch.hpp"

using namespace chorale;

TEST_CASE("a wait whose condition soon holds never reads the clock") {
  struct Unread : VirtualClock {
    double seconds() const override { throw std::runtime_error("the clock was read"); }
  } clock;
  int polls = 0;
  wait_until([&] { return ++polls == 1500; }, {.clock = clock, .spins = 2000}, "a poll");
  CHECK(polls == 1500);
}

namespace {

struct Ticking final : VirtualClock {  // each look at the clock takes a millisecond
  double seconds() const override { return now += 1e-3; }
  void sleep(double) override { ++sleeps; }
  mutable double now = 0;
  int sleeps = 0;
};

}  // namespace

TEST_CASE("a rank that has a core spins for a while after the last progress, and only then sleeps") {
  int polls = 0;
  Ticking clock;
  wait_until([&] { return ++polls == 40; }, {.clock = clock, .spins = 0, .spin_seconds = 0.05, .yields = 0}, "a poll");
  CHECK(clock.sleeps == 0);
  polls = 0;
  wait_until([&] { return ++polls == 80; }, {.clock = clock, .spins = 0, .spin_seconds = 0.05, .yields = 0}, "a poll");
  CHECK(clock.sleeps >= 28);
  CHECK(clock.sleeps <= 31);
  clock.sleeps = polls = 0;
  const auto moved = [&] { return static_cast<std::uint64_t>(polls / 40); };
  wait_until([&] { return ++polls == 80; }, {.clock = clock, .spins = 0, .spin_seconds = 0.05, .yields = 0, .moved = moved},
             "a poll that moves");
  CHECK(clock.sleeps == 0);
}

TEST_CASE("waiting spins, then yields, then sleeps, at most 200 µs each time") {
  VirtualClock clock;
  int polls = 0, idles = 0;
  wait_until([&] { return ++polls == 10 + 5 + 6; }, {.clock = clock, .spins = 10, .yields = 5, .on_idle = [&] { ++idles; }},
             "a poll");
  // on_idle runs before each sleep. There are 21 polls: 10 while spinning, 1 before the first yield, and 1 after each of 5
  // yields and 5 sleeps.
  CHECK(idles == 5);
  CHECK(clock.seconds() == Approx(50e-6 + 100e-6 + 150e-6 + 2 * 200e-6));
}

TEST_CASE("a wait calls all hooks of its thread when it sleeps") {
  VirtualClock clock;
  int first = 0, second = 0;
  const ProgressHook outer([&] { ++first; });
  {
    const ProgressHook inner([&] { ++second; });
    wait_until([&] { return first == 3; }, {.clock = clock, .timeout_seconds = 1, .spins = 1}, "what a hook brings");
  }
  run_progress_hooks();
  CHECK(first == 4);
  CHECK(second == 3);
}

TEST_CASE("a wait that exceeds its limit is an error that names the awaited event") {
  VirtualClock clock;
  try {
    wait_until([] { return false; }, {.clock = clock, .timeout_seconds = 2.5, .spins = 3}, "rank 7's flag");
    FAIL("it returned");
  } catch (const Error& error) {
    CHECK(error.exit() == Exit::watchdog);
    CHECK(std::string(error.what()).find("waited too long for rank 7's flag") == 0);
    CHECK(clock.seconds() >= 2.5);
    CHECK(clock.seconds() < 2.6);
  }
}

TEST_CASE("a request to stop ends a wait that hangs, but not a wait that ends soon or makes progress") {
  Signals signals;
  std::raise(SIGTERM);
  VirtualClock clock;
  const Waiting how{.clock = clock, .timeout_seconds = 600};
  Waiting moving = how;
  moving.moved = [&] { return static_cast<std::uint64_t>(clock.seconds() / 60); };
  wait_until([&] { return clock.seconds() > 100; }, how, "a slow peer");
  wait_until([&] { return clock.seconds() > 1000; }, moving, "a long job");
  CHECK_THROWS_WITH(wait_until([] { return false; }, how, "rank 7's flag"),
                    says("asked to stop while waiting for rank 7's flag"));
  CHECK(clock.seconds() < 1130);
  CHECK(signals.pending() == SIGTERM);  // the signal is still pending for the code that handles it
}

TEST_CASE("the time limit of a wait starts again at every step of progress") {
  VirtualClock clock;
  int polls = 0;
  const Waiting how{.clock = clock, .timeout_seconds = 0.0005, .spins = 10, .yields = 5, .moved = [&] { return polls / 8; }};
  wait_until([&] { return ++polls == 1000; }, how, "a long job");
  // In this wait, progress resets the length of the sleeps, so sleeps stay short. Without progress, every sleep would take
  // 200 µs.
  CHECK(clock.seconds() < 990 / 8 * 2 * 200e-6);
  CHECK(clock.seconds() > 0.0005);  // the time limit is for each step of progress, not for the complete wait
}

TEST_CASE("a failure detector can end a wait") {
  VirtualClock clock;
  const Waiting how{.clock = clock, .spins = 0, .yields = 0, .on_idle = [] { throw std::runtime_error("rank 3 died"); }};
  CHECK_THROWS_WITH(wait_until([] { return false; }, how, "rank 3"), "rank 3 died");
}

namespace {

std::string shown(bool terminal, int columns, int updates) {
  char* text = nullptr;
  std::size_t length = 0;
  std::FILE* stream = open_memstream(&text, &length);
  VirtualClock clock;
  Progress progress("prove", updates, clock, {stream, terminal, columns});
  for (int i = 0; i < updates; ++i) {
    progress.update(i, "µ-ring");
    clock.sleep(0.0625);
  }
  progress.finish();
  std::fclose(stream);
  std::string result(text, length);
  std::free(text);
  return result;
}

}  // namespace

TEST_CASE("where lines cannot be rewritten, progress is plain lines, seconds apart") {
  const std::string text = shown(false, 80, 200);  // 12.5 s
  CHECK(text ==
        "prove  32/200  16 %  2.0 s, 10.5 s to go at this pace  µ-ring\n"
        "prove  112/200  56 %  7.0 s, 5.5 s to go at this pace  µ-ring\n"
        "prove  192/200  96 %  12.0 s, 500 ms to go at this pace  µ-ring\n"
        "prove  200/200 in 12.5 s\n");
}

TEST_CASE("until something is done, progress shows the estimate") {
  char* text = nullptr;
  std::size_t length = 0;
  std::FILE* stream = open_memstream(&text, &length);
  VirtualClock clock;
  Progress progress("prove", 4, clock, {stream, false, 80});
  progress.guess(100);
  clock.sleep(10);
  progress.update(0);
  clock.sleep(30);
  progress.update(1);
  clock.sleep(30);  // meanwhile the second part runs
  progress.update(1);
  std::fclose(stream);
  CHECK(std::string(text, length) ==
        "prove  0/4  0 %  10.0 s, about 1 min 30 s to go\nprove  1/4  25 %  40.0 s, 2 min 00 s to go at this pace\n"
        "prove  1/4  25 %  1 min 10 s, 1 min 30 s to go at this pace\n");
  std::free(text);
  CHECK(Progress::screen_at("off").stream == nullptr);
  CHECK(Progress::screen_at("warn").stream == nullptr);
  CHECK(Progress::screen_at("info").stream == stderr);
}

TEST_CASE("on a terminal, progress rewrites one line at most ten times a second, and cuts it to the width") {
  const std::string text = shown(true, 20, 200);
  CHECK(std::count(text.begin(), text.end(), '\r') == 100 + 1);
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
  CHECK(text.find("\rprove  0/200  0 %  \x1b[K") == 0);
}
