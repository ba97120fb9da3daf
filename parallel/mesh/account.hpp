// Counts a rank's calls and sent bytes on each axis of a mesh, by operation. A plan and a run each fill such accounts, and
// both must be equal.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>

#include <chorale/problem.hpp>

namespace chorale {

// An axis counts these operations: every collective, and messages from one rank to another.
inline constexpr std::size_t messages = static_cast<std::size_t>(Collective::barrier) + 1;
inline constexpr std::size_t operations = messages + 1;
const char* operation_name(std::size_t operation);

// The bytes that this rank sends in one call.
struct Sent {
  std::int64_t bytes = 0;     // −1: unknown, because a library's own algorithm sends them
  std::int64_t crossing = 0;  // the part of `bytes` that is sent to other hosts; −1: unknown
  std::int64_t due = 0;       // in an all_to_all: bytes of the rows that this rank has for other ranks
};

struct Account {
  struct Entry {
    std::int64_t calls = 0;
    std::int64_t bytes = 0, crossing = 0, due = 0;  // sums of the fields of Sent over all calls; −1: unknown for some call
    bool operator==(const Entry&) const = default;
  };
  std::array<Entry, operations> entries{};
  void add(std::size_t operation, const Sent& sent);
};
using Accounts = std::map<std::string, Account>;  // key: the name of the axis

}  // namespace chorale
