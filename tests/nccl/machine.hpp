// What stands for a GPU in the tests of the backend nccl: streams of tasks that are gone on with only when somebody polls, and memory that
// the processor cannot touch. One a process.
//
//   stream   [ message ][ sum ][ event ]      a task that cannot end yet holds up those behind it, and no other stream's
#pragma once
#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "tests/far_memory.hpp"

namespace chorale::test {

struct EmulatedStream {
  std::deque<std::function<bool()>> tasks;  // true: it is over
};

struct EmulatedEvent {
  std::shared_ptr<bool> passed = std::make_shared<bool>(true);
};

class Machine {
 public:
  static Machine& here() {
    static Machine machine;
    return machine;
  }
  void advance() {
    for (EmulatedStream* stream : streams)
      while (!stream->tasks.empty() && stream->tasks.front()()) stream->tasks.pop_front();
  }
  std::byte* reached(const void* place, std::size_t bytes) const {
    return bytes == 0 ? nullptr : static_cast<std::byte*>(memory->reached(place, static_cast<std::int64_t>(bytes)));
  }

  std::vector<EmulatedStream*> streams;
  FarMemory* memory = nullptr;
};

}  // namespace chorale::test
