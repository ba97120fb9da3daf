// Runs checks on every backend. A check gets a communicator of all ranks and returns an error text ("" if there is no
// error). If possible, a check continues after an error, so that the other ranks do not wait forever.
#pragma once
#include <fmt/core.h>

#include <initializer_list>
#include <span>
#include <string>

#include "collectives/backends/backends.hpp"
#include "collectives/backends/threads.hpp"
#include "collectives/call/communicator.hpp"
#include "tests/spmd.hpp"

namespace chorale::test {

struct Check {
  const char* name;
  std::string (*body)(Communicator& world);
};

// Runs the check and prints its error immediately, because other ranks may be waiting for a call that this rank never makes.
inline std::string trouble_of(const Check& check, Communicator world) try {
  const std::string trouble = check.body(world);
  if (!trouble.empty()) fmt::print(stderr, "{}: {}\n", check.name, trouble);
  return trouble;
} catch (const std::exception& error) {
  return error.what();
}

// Returns the message of the error that the call throws, or "nothing" if the call returns.
template <class Make>
std::string thrown_by(Make&& call) try {
  call();
  return "nothing";
} catch (const std::exception& error) {
  return error.what();
}

inline void on_thread_worlds(std::span<const Check> checks, std::initializer_list<int> sizes) {
  for (const Check& check : checks)
    for (const int size : sizes) {
      INFO(check.name << " on " << size << " threads");
      ThreadWorld world(size);
      REQUIRE(on_threads(size, [&](ThreadRank& me) {
                SystemClock clock;
                const std::string trouble = trouble_of(check, open_world(world.transport(me.rank()), clock));
                me.check(trouble.empty(), "{}", trouble);
              }) == "");
    }
}

// Whether the backend connects all ranks of this launch and accepts host buffers. The backend nccl accepts only device
// memory, so nccl_test.cpp tests it. The first call of joins_all() is collective: all ranks must make it.
inline bool joins_all(const Backend& backend) {
  static const Topology topology = topology_of(world());
  return joins_here(backend) && !backend.devices_only && (topology.hosts() == 1 || !backend.one_host);
}

// Runs the checks on every backend for which joins_all() is true. For [spmd] tests.
inline void on_every_backend(std::span<const Check> checks) {
  SystemClock clock;
  for (const Backend& backend : all_backends()) {
    if (!joins_all(backend)) continue;
    for (const Check& check : checks) {
      const std::string trouble = trouble_of(check, open_world(backend.name, world(), clock));
      INFO(check.name << " on " << backend.name);
      REQUIRE_ALL(trouble == "");
    }
  }
}

}  // namespace chorale::test
