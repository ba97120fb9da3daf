// The board of a rank: what it shows the other ranks of a group about the collectives it is in. Only its owner writes it (but for
// the farewells); there is no atomic read-modify-write. Eight collectives may be in flight, each in a slot that the ninth takes over.
//
//   slot    word 0      | tag : 32 | steps 0 … 31 : one bit each |   bit set: the step has happened, its data may be read
//           history     of all calls up to this one, so that peers see at their first look whether they have made the same
//           stage       small data ride here, the first 48 bytes in the very cache line of word 0; or, when data stay where
//                       they are, the locations of this rank's buffers
//           more words  | tag | steps 32 … 63 | …
//
// A tag counts what the slot has been used for, so that what an earlier use left behind is never taken for news: a collective, or each
// of its slices, of which a rank may be at the next one while another still looks for the end of this.
// A rank takes over a slot when all others have finished with it: that is what `finished` is for.
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
  std::uint64_t more[words];  // the first is not used
  char call[128];             // in words
};

struct alignas(128) Board {
  std::uint64_t finished = 0;  // collectives, all up to this one
  alignas(128) std::uint64_t poisoned = 0;
  char why[368];
  std::uint64_t closed = 0;  // its owner has given up, and touches nobody's memory any more
  Slot slot[slots];
};

// After the board, for each member: where this rank's boards for messages to and from it lie (0: not yet made), and whether it has said
// farewell: a member that leaves the group tells all others so, and a board is taken down when all have. On a member's own board its
// farewell is `leaving` until it has told the others, and then `left`: from there on it touches no board of theirs.
constexpr std::uint64_t leaving = 1, left = 2;
struct Member {
  std::uint64_t to = 0, from = 0;
  std::uint64_t gone = 0;
};
inline Member& member(Board& board, int rank) { return reinterpret_cast<Member*>(&board + 1)[rank]; }
inline std::int64_t board_bytes(int members) {
  return static_cast<std::int64_t>(sizeof(Board) + static_cast<std::size_t>(members) * sizeof(Member));
}

// What a call's history becomes when its rank gives up. A peer that comes to the call later must not touch the buffers that the slot names.
// Histories of calls are odd, or 0 where calls are not compared.
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
// Of a slot's word 0, which every use shows: whether it is of that use or a later one. Tags may have begun from 0 again.
inline bool has_reached(std::uint64_t word, std::uint64_t tag) { return static_cast<std::int64_t>(tag_in(word) - tag) >= 0; }

}  // namespace chorale::mapped
