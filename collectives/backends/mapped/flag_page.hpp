// Each rank of a group has a flag page, on which the rank shows its progress in the current collectives to the other ranks.
// Only the owner writes to a flag page, with one exception: a member that leaves the group writes a farewell to the flag
// pages of all other members. So no atomic read-modify-write is needed. Up to eight collectives can be in flight. Call
// number s uses slot s modulo 8:
//
//   slot    word 0      | tag : 32 | steps 0 … 31 : one bit each |   bit set: the step is done, and its data may be read
//           history     hash of all calls up to this call, which peers compare with their own hash
//           where       the locations of this rank's buffers, in the same cache line
//           more words  | tag | steps 32 … 63 | …
//           cells       the data that this rank sends, if they are small (cell.hpp)
//
// The tag is the number of the call, so bits of an earlier call are never mistaken for bits of the current call. A rank uses
// a slot for a new call only after all members have finished the slot's previous call. The counter `finished` of a flag page
// shows which calls the owner has finished.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collectives/backends/mapped/cell.hpp"

namespace chorale::mapped {

constexpr int slots = 8;
constexpr int bits_of_word = 32;
constexpr int words = 1024;
constexpr std::int64_t where_bytes = 48;
constexpr std::int64_t cells = 146;  // data of 8176 bytes

struct alignas(128) Slot {
  std::uint64_t word = 0;
  std::uint64_t history = 0;
  std::byte where[where_bytes];
  std::uint64_t more[words];  // words 1, 2, … of the slot; `more[0]` is unused
  char call[128];             // description of the call
  EagerCell cells[mapped::cells];
};

struct alignas(128) FlagPage {
  std::uint64_t finished = 0;               // the owner has finished all calls up to this number
  alignas(128) std::uint64_t poisoned = 0;  // 1 if the owner has given up; the reason is then in `why`
  char why[368];
  std::uint64_t closed = 0;  // 1 if the owner has given up and no longer accesses other ranks' memory
  Slot slot[slots];
};

// In memory, a flag page is followed by one Member for each member of the group. `to` and `from` are the locations of the
// owner's flag pages for point-to-point messages to and from this member, or 0 before the flag page is created. `gone` is
// this member's farewell. A member that leaves writes its farewell to the flag pages of all other members. A flag page is
// freed once it has the farewells of all members. On its own flag page, a member writes `leaving` before it writes to the
// other flag pages, and writes `left` afterwards. After writing `left`, the member accesses no flag pages of other members.
constexpr std::uint64_t leaving = 1, left = 2;
struct Member {
  std::uint64_t to = 0, from = 0;
  std::uint64_t gone = 0;
};
inline Member& member(FlagPage& page, int rank) { return reinterpret_cast<Member*>(&page + 1)[rank]; }
inline std::int64_t flag_page_bytes(int members) {
  return static_cast<std::int64_t>(sizeof(FlagPage) + static_cast<std::size_t>(members) * sizeof(Member));
}

// When a rank gives up a call, it replaces the call's history (a hash of all calls so far) by this value. If a peer begins
// the call later, the peer must not access the buffers at the locations in the slot. Real histories are odd, or 0 if calls
// are not compared.
constexpr std::uint64_t abandoned = 2;

inline std::uint64_t load_acquire(const std::uint64_t& word) {
  return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}
inline void store_release(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref<std::uint64_t>(word).store(value, std::memory_order_release);
}

inline std::uint64_t& word_of(Slot& slot, int index) { return index == 0 ? slot.word : slot.more[index]; }
inline const std::uint64_t& word_of(const Slot& slot, int index) { return index == 0 ? slot.word : slot.more[index]; }
inline std::uint64_t bit_of(int step) { return std::uint64_t{1} << (step % bits_of_word); }
inline std::uint64_t tag_in(std::uint64_t word) { return word >> bits_of_word << bits_of_word; }
inline std::uint64_t tag_of(std::uint64_t sequence) { return sequence << bits_of_word; }
// Whether a slot has reached the call with this tag or a later call. `word` is word 0 of the slot. The comparison is correct
// even after tags have wrapped around.
inline bool has_reached(std::uint64_t word, std::uint64_t tag) { return static_cast<std::int64_t>(tag_in(word) - tag) >= 0; }

}  // namespace chorale::mapped
