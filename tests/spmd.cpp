#include "tests/spmd.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <thread>

#include "src/base/text.hpp"

namespace chorale::test {

std::string environment(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value ? value : otherwise;
}

bool thorough() { return !environment("TEST_ALL", "").empty(); }

std::string needed(const char* name) {
  if (const char* value = std::getenv(name)) return value;
  throw Error(Exit::usage, fmt::format("{} is not set", name), "this case is part of a Python test, which sets it",
              "run that test instead, or set it by hand");
}

void ThreadRank::barrier() {
  // Each thread adds 1 to the shared count. The k-th barrier opens when the count reaches k times the number of threads.
  alive();
  const int all = ++barriers_ * crowd_.size;
  ++crowd_.arrived;
  constexpr double never = 1e9;  // no time limit, because the watchdog checks for progress
  wait_until([&] { return crowd_.arrived >= all || crowd_.broken; },
             {.clock = clock_, .timeout_seconds = never, .spins = 100}, "the other threads at a barrier");
  if (crowd_.broken) throw Error(Exit::runtime, "another rank failed before the barrier", "", "");
}

void ThreadRank::fail(const std::source_location& where, const std::string& why) {
  throw Error(Exit::check, why, "", "", where);
}

std::string on_threads(int size, const std::function<void(ThreadRank&)>& body) {
  Crowd crowd{.size = size};
  crowd.failures.resize(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        ThreadRank me(rank, crowd);
        body(me);
      } catch (const std::exception& error) {
        crowd.failures[static_cast<std::size_t>(rank)] = fmt::format("rank {}: {}\n", rank, error.what());
        crowd.broken = true;
      }
    });
  for (std::thread& thread : threads) thread.join();
  return join(crowd.failures, "");
}

}  // namespace chorale::test
