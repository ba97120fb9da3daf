// The errors of ranks that no longer make the same calls, on every backend. Ranks are those of the world.
#pragma once
#include <cstdint>
#include <string>

namespace chorale {

// A call of `rank`, and where its ranks parted, in words.
struct CallOf {
  int rank;
  std::string words;
};
[[noreturn]] void throw_calls_differ(const CallOf& ours, const CallOf& theirs);

// `peer` left the group after so many calls, and `rank` waits in a later one.
[[noreturn]] void throw_left(int peer, std::uint64_t calls, int rank, std::uint64_t sequence, const std::string& words);

}  // namespace chorale
