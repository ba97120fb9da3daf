// Requests to stop, read as data. SIGTERM, SIGINT and SIGUSR1 are blocked and collected through a signalfd, so there is
// no handler, no global flag, and no moment at which a record could be cut in half. Make it before MPI and before any
// thread: both inherit the mask.
#pragma once
#include <optional>

#include "src/base/handle.hpp"

namespace chorale {

struct DescriptorTraits {
  using type = int;
  static type none() { return -1; }
  static void close(type fd) noexcept;
};
using Descriptor = Handle<DescriptorTraits>;

class Signals {
 public:
  Signals();
  std::optional<int> pending();  // the signal that came since the last call, if any; never waits

 private:
  Descriptor fd_;
};

}  // namespace chorale
