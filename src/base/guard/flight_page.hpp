// The flight recorder of a rank: a few KiB of memory that the rank shares with the guard of its host (guard.hpp). The rank
// writes to the page with plain stores while it works. The guard can read the page even if the rank is dead, stopped or in
// an endless loop.
//
//   rank ── writes ──▶ heartbeats  doing  calls[32]  …   guard ── writes ──▶ lost, reason: every wait of the rank reads them
//
// Cost: a few stores per collective call. experiments/findings/reliability.md compares runs with and without the recorder.
// All members are numbers and fixed-size strings, so a copy of the page is valid in any process.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace chorale {

// A collective call that this rank has made on a group.
struct FlightCall {
  enum class State : std::uint32_t { none, begun, over, failed };
  std::uint64_t ticket = 0;    // number of this call among this rank's calls on all groups, from 1
  std::uint64_t sequence = 0;  // number of this call among the group's calls, from 1
  std::uint64_t group = 0;     // equal on all members of a group, and different for groups with different members
  std::int64_t bytes = 0;
  std::uint64_t steps = 0;   // schedule steps done so far; set only while the rank waits
  std::int32_t awaits = -1;  // the world rank that must act next, or −1 if it is unknown. Set only while this rank waits
  State state = State::none;
  char members[92] = {};  // world ranks: "0-3", "0,4,8"; with "…" at the end if there are more
  char words[80] = {};    // "all_reduce of 1024 f32, sum, ring"
};
// Texts in the form in which a FlightCall holds them, so that a call copies a fixed number of bytes.
using FlightMembers = std::array<char, sizeof FlightCall::members>;
using FlightWords = std::array<char, sizeof FlightCall::words>;

// A group of which this rank is or was a member. `group` is the group's mark. `calls` is the number of calls that this rank
// has begun or queued in the group. `since` is the ticket of the newest call that the rank had made when it joined the
// group. Marks can be reused, so an older call with this mark belongs to a different group.
struct FlightGroup {
  std::uint64_t group = 0, calls = 0, since = 0;
};

struct FlightPage {
  static constexpr int kept = 32;          // number of calls that the page keeps, which are the newest ones
  static constexpr int kept_groups = 128;  // number of groups that the page keeps, which are the newest ones
  enum class Fate : std::uint32_t { running, finished, failed };

  std::int32_t rank = 0, size = 1, pid = 0;
  Fate fate = Fate::running;
  std::int32_t exit_code = 0;  // exit code of a rank that failed
  char host[64] = {};
  char program[256] = {};        // the program as the user typed it; used when a message suggests a command
  char doing[64] = {};           // "start-up", "step 12", "saving step 12", "row 3 of 24: all_reduce ring 4.0 KiB"
  char folder[512] = {};         // the run folder, for dumps; "" until it exists
  char saved[512] = {};          // the newest checkpoint; "" if there is no checkpoint yet
  std::uint64_t heartbeats = 0;  // counts all progress of this rank: calls, layers, parts of files
  std::uint64_t moved = 0;       // schedule steps that this rank has done while waiting
  std::uint64_t idles = 0;       // number of polls in all waits for other ranks and for files, including waits during set-up
  std::uint32_t waits = 0;       // 1: the rank waits for other ranks in a call of a communicator
  std::uint64_t awaited = 0;     // the ticket of the call that the rank waits for, or 0 if that call has not begun
  double patience = 60;          // time limit of a wait for other ranks: seconds without any progress
  std::uint64_t newest = 0;      // the newest ticket
  FlightCall calls[kept];
  std::uint64_t groups_so_far = 0;
  FlightGroup groups[kept_groups];

  std::uint32_t asked_to_end = 0;  // 1: a signal has asked this rank to end
  std::uint32_t supervised = 0;    // 1: a supervisor (`chorale launch`) starts the run again

  // The members below are written by the guard.
  std::uint64_t judged = 0;  // number of times that the guard has checked whether the run hangs
  std::int32_t lost = 0;     // the exit code if the run cannot go on, and otherwise 0; `reason` says why the run cannot go
                             // on
  char reason[1024] = {};

  const FlightCall* call(std::uint64_t ticket) const {
    const FlightCall& found = calls[ticket % kept];
    return ticket != 0 && found.ticket == ticket ? &found : nullptr;
  }
  const FlightCall* last() const { return call(newest); }
  // Returns the newest group with this mark, or null if the page does not (or no longer) contain such a group.
  const FlightGroup* group(std::uint64_t mark) const {
    for (std::uint64_t g = groups_so_far; g > 0 && g + kept_groups > groups_so_far; --g)
      if (groups[g % kept_groups].group == mark) return &groups[g % kept_groups];
    return nullptr;
  }
};

template <std::size_t N>
void put(char (&text)[N], std::string_view words) {
  const std::size_t length = std::min(words.size(), N - 1);
  std::memcpy(text, words.data(), length);
  text[length] = 0;
}

// Copies a list of numbers. A list that is too long is truncated after a comma and marked as incomplete.
template <std::size_t N>
void put_list(char (&text)[N], std::string_view list) {
  constexpr std::string_view more = "…";
  if (list.size() >= N) {
    list = list.substr(0, list.substr(0, N - more.size()).find_last_of(',') + 1);
    put(text, list);
    std::memcpy(text + list.size(), more.data(), more.size());
    text[list.size() + more.size()] = 0;
  } else {
    put(text, list);
  }
}

inline FlightWords flight_words(std::string_view words) {
  FlightCall call;
  put(call.words, words);
  return std::to_array(call.words);
}

// Reads a string from a page to which another process might be writing. Never reads more than N bytes.
template <std::size_t N>
std::string fixed_text(const char (&text)[N]) {
  return {text, strnlen(text, N)};
}

}  // namespace chorale
