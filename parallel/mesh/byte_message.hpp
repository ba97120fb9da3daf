// A message of bytes between two ranks, in the memory of their hosts.
#pragma once
#include <cstddef>
#include <span>

namespace chorale {

struct ByteMessage {
  int rank = 0;  // the other rank: the receiver of a sent message, the sender of a received one
  std::span<std::byte> bytes;
};

}  // namespace chorale
