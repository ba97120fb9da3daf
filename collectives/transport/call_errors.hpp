// Errors that every backend throws if the calls of two ranks do not match, or if a rank left or gave up. All rank numbers
// are world ranks.
#pragma once
#include <cstdint>
#include <string>

namespace chorale {

// The description of a call that `rank` made, for the error message.
struct CallOf {
  int rank;
  std::string words;
};
// `sequence` is the number of the call in its group, counted from 1.
[[noreturn]] void throw_calls_differ(std::uint64_t sequence, const CallOf& ours, const CallOf& theirs);

// `peer` left the group after `calls` calls, and `rank` waits in a later call.
[[noreturn]] void throw_left(int peer, std::uint64_t calls, int rank, std::uint64_t sequence, const std::string& words);

// `what` says which rank gave up on the group, and `why` quotes the error of that rank.
[[noreturn]] void throw_gave_up(std::string what, std::string why);

}  // namespace chorale
