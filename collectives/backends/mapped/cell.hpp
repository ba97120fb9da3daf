// An EagerCell is one cache line that carries small data together with a flag. The owner writes the data, then the tag. A
// reader polls the tag, so the data and the news that they have arrived come in the same transfer of a cache line.
//
//   cell    | 56 bytes of data                   | tag |      tag: the call to which the data belong
//   message | cell 0 | cell 1 | cell 2 | …                    a reader copies cell k while the owner writes k + 1
//
// The size of every element type divides 56, so no element lies in two cells.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace chorale::mapped {

struct alignas(64) EagerCell {
  static constexpr std::int64_t data_bytes = 56;
  std::byte data[data_bytes];
  std::uint64_t tag = 0;
};
static_assert(sizeof(EagerCell) == 64);

// The number of cells that hold `bytes` bytes from position `first` on, counted in data bytes from the first cell.
constexpr std::int64_t cells_of(std::int64_t first, std::int64_t bytes) {
  return (first % EagerCell::data_bytes + bytes + EagerCell::data_bytes - 1) / EagerCell::data_bytes;
}

inline void fill(EagerCell& cell, const std::byte* from, std::int64_t bytes, std::uint64_t tag) {
  if (bytes >= EagerCell::data_bytes)
    std::memcpy(cell.data, from, EagerCell::data_bytes);  // a constant length, so the copy is a few instructions
  else
    std::memcpy(cell.data, from, static_cast<std::size_t>(bytes));
  std::atomic_ref(cell.tag).store(tag, std::memory_order_release);
}

// Writes a message to consecutive cells.
inline void fill_cells(EagerCell* cells, const std::byte* from, std::int64_t bytes, std::uint64_t tag) {
  for (; bytes > 0; ++cells, from += EagerCell::data_bytes, bytes -= EagerCell::data_bytes) fill(*cells, from, bytes, tag);
}

inline bool is_filled(const EagerCell& cell, std::uint64_t tag) {
  return std::atomic_ref(const_cast<std::uint64_t&>(cell.tag)).load(std::memory_order_acquire) == tag;
}

// Copies those parts of a message that have arrived. The message begins at data byte `first` of the cells. `done` is the
// number of bytes copied so far. Returns whether the message is complete.
inline bool take_cells(const EagerCell* cells, std::int64_t first, std::byte* into, std::int64_t bytes, std::int64_t& done,
                       std::uint64_t tag) {
  const EagerCell* cell = cells + (first + done) / EagerCell::data_bytes;
  for (std::int64_t skipped = (first + done) % EagerCell::data_bytes; done < bytes; ++cell, skipped = 0) {
    if (!is_filled(*cell, tag)) return false;
    const std::int64_t here = std::min(bytes - done, EagerCell::data_bytes - skipped);
    if (here == EagerCell::data_bytes)
      std::memcpy(into + done, cell->data, EagerCell::data_bytes);
    else
      std::memcpy(into + done, cell->data + skipped, static_cast<std::size_t>(here));
    done += here;
  }
  return true;
}

}  // namespace chorale::mapped
