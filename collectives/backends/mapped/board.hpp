// A rank's board shows the other ranks of a group its progress in the current collectives. Only its owner writes to it,
// except for farewells; there is no atomic read-modify-write. Eight collectives may be in flight, each in a slot that the
// ninth takes over.
//
//   slot    word 0      | tag : 32 | steps 0 … 31 : one bit each |   bit set: the step has happened, its data may be read
//           history     hash of all calls up to this one: a peer's first look shows whether it made the same calls
//           stage       small data, the first 48 bytes in the cache line of word 0; for larger data, the locations of this
//                       rank's buffers
//           more words  | tag | steps 32 … 63 | …
//
// A tag counts the uses of a slot, so that leftovers of an earlier use are never taken for news. A use is a collective, or
// one of its slices: a rank may already be at the next slice while a peer still waits for the end of this one. A rank takes
// over a slot when all others have finished with it; `finished` tells.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace chorale::mapped {

constexpr int slots = 8;
constexpr int bits_of_word = 32;
constexpr int words = 1024;
constexpr std::int64_t stage_bytes = 8176;

struct alignas(128) Slot {
  std::uint64_t word = 0;
  std::uint64_t history = 0;
  std::byte stage[stage_bytes];
  std::uint64_t more[words];  // the first is unused
  char call[128];             // the call in words
};

struct alignas(128) Board {
  std::uint64_t finished = 0;  // all collectives up to this number are finished
  alignas(128) std::uint64_t poisoned = 0;
  char why[368];
  std::uint64_t closed = 0;  // the owner has given up and touches no other rank's memory any more
  Slot slot[slots];
};

// Follows the board, one per member. `to` and `from` locate this rank's boards for messages to and from the member (0: not
// created yet). `gone` holds the member's farewell: on leaving, it writes to the boards of all others. A board is taken down
// when all members have done so. On its own board, a member's farewell is `leaving` until it has told the others, then
// `left`: from then on it touches no other board.
constexpr std::uint64_t leaving = 1, left = 2;
struct Member {
  std::uint64_t to = 0, from = 0;
  std::uint64_t gone = 0;
};
inline Member& member(Board& board, int rank) { return reinterpret_cast<Member*>(&board + 1)[rank]; }
inline std::int64_t board_bytes(int members) {
  return static_cast<std::int64_t>(sizeof(Board) + static_cast<std::size_t>(members) * sizeof(Member));
}

// The history shown for a call when its rank gives up. A peer that reaches the call later must not touch the buffers that
// the slot names. Real histories are odd, or 0 if calls are not compared.
constexpr std::uint64_t abandoned = 2;

inline std::uint64_t look(const std::uint64_t& word) {
  return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}
inline void show(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref<std::uint64_t>(word).store(value, std::memory_order_release);
}

inline std::uint64_t& word_of(Slot& slot, int index) { return index == 0 ? slot.word : slot.more[index]; }
inline const std::uint64_t& word_of(const Slot& slot, int index) { return index == 0 ? slot.word : slot.more[index]; }
inline std::uint64_t bit_of(int step) { return std::uint64_t{1} << (step % bits_of_word); }
inline std::uint64_t tag_in(std::uint64_t word) { return word >> bits_of_word << bits_of_word; }
constexpr std::uint64_t one_turn = std::uint64_t{1} << bits_of_word;
// Given a slot's word 0, which every use writes: whether it belongs to that use or a later one. Tags may have wrapped.
inline bool has_reached(std::uint64_t word, std::uint64_t tag) { return static_cast<std::int64_t>(tag_in(word) - tag) >= 0; }

}  // namespace chorale::mapped
