// A file descriptor that closes itself.
#pragma once
#include <unistd.h>

#include "src/base/handle.hpp"

namespace chorale {

struct DescriptorTraits {
  using type = int;
  static type none() { return -1; }
  static void close(type fd) noexcept { ::close(fd); }
};
using Descriptor = Handle<DescriptorTraits>;

}  // namespace chorale
