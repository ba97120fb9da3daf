#include "collectives/transport/call_errors.hpp"

#include <fmt/format.h>

#include <utility>

#include "src/base/error.hpp"

namespace chorale {

void throw_calls_differ(std::uint64_t sequence, const CallOf& ours, const CallOf& theirs) {
  throw Error(Exit::runtime, "ranks of one group made different calls",
              fmt::format("rank {} called {}, rank {} called {}, as call {} of the group", ours.rank, ours.words,
                          theirs.rank, theirs.words, sequence),
              "make the same calls in the same order on all ranks of a group");
}

void throw_left(int peer, std::uint64_t calls, int rank, std::uint64_t sequence, const std::string& words) {
  throw Consequence(fmt::format("rank {} has left a group in which other ranks still make calls", peer),
                    fmt::format("its calls there: {}; rank {} waits in call {}, {}", calls, rank, sequence, words),
                    fmt::format("all ranks of a group must make the same calls: did rank {} return early or fail?", peer));
}

void throw_gave_up(std::string what, std::string why) {
  throw Consequence(std::move(what), std::move(why), "fix that error first; this group cannot be used any more");
}

}  // namespace chorale
