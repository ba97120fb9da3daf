#include "collectives/backends/call_errors.hpp"

#include <fmt/format.h>

#include "src/base/error.hpp"

namespace chorale {

void throw_calls_differ(const CallOf& ours, const CallOf& theirs) {
  throw Error(Exit::runtime, "ranks of one group made different calls",
              fmt::format("rank {} called {}, rank {} called {}", ours.rank, ours.words, theirs.rank, theirs.words),
              "all ranks of a group make the same calls in the same order");
}

void throw_left(int peer, std::uint64_t calls, int rank, std::uint64_t sequence, const std::string& words) {
  throw Error(Exit::runtime, fmt::format("rank {} has left a group that others still call", peer),
              fmt::format("its calls there: {}; rank {} waits in call {}, {}", calls, rank, sequence, words),
              fmt::format("all ranks of a group make the same calls: did rank {} return early, or fail?", peer));
}

}  // namespace chorale
