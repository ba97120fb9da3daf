// The memory in which a rank keeps snapshots of its state, so that a later start of the run can continue from them. The
// memory outlives the rank, because the keeper (keeper.hpp) also holds it.
//
//   rank ── writes every step, in turn ──▶ generation 0: info, image    step 17   complete
//                                          generation 1: info, image    step 18   being written: step −1
//
// A generation consists of two files in memory (memfd). The image has the format of a checkpoint's file. The info has a
// fixed head, and then a text that describes the image. While a rank writes a generation, the step in the head is −1. A rank
// that dies at any moment therefore leaves at least the other generation intact.
//
// Two generations are enough. A rank begins the snapshot of step N only after step N, in which it has exchanged data with
// every other rank. So all ranks have then completed their snapshots of step N−1, and step N−2 can be overwritten.
#pragma once
#include <cstdint>

#include "src/base/descriptor.hpp"

namespace chorale {

inline constexpr int kept_generations = 2;

struct KeptHead {
  static constexpr std::uint64_t format = 0x3174706b72686331;  // changes whenever the layout of the files changes
  std::uint64_t magic = format;
  std::int64_t step = -1;        // −1: incomplete
  std::uint64_t text_bytes = 0;  // the text follows the head
  std::uint32_t text_crc32c = 0;
};

// The files of one generation.
struct KeptFiles {
  Descriptor info, image;
};

// Reads the step of a generation without trusting the file; −1 if the generation is incomplete or is not a snapshot.
std::int64_t kept_step(int info);

}  // namespace chorale
