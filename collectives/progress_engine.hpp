// What a rank has in flight, and how it goes on. There is no helper thread: whoever waits moves all calls that this rank has begun, on any
// group of the worlds that share the engine.
#pragma once
#include <vector>

#include "collectives/backends/transport.hpp"
#include "collectives/communicator.hpp"
#include "src/base/wait.hpp"

namespace chorale {

struct Route;

// One run of one operation, from when it is asked for until it is over.
struct Request::PendingCall {
  // A started call keeps its group alive. It goes after the operation, and a pair's group before its parent.
  std::shared_ptr<Communicator::State> keeps_parent = nullptr, keeps_group = nullptr;
  Communicator::State* group = nullptr;
  std::shared_ptr<Route> route = nullptr;  // kept when the group forgets it
  bool blocking = false;                   // the library's own call may block: see Communicator::block_in_native
  void *input = nullptr, *output = nullptr;
  std::unique_ptr<Operation> operation = nullptr;
  std::uint64_t sequence = 0;         // 0: not begun yet
  PendingCall* next_piece = nullptr;  // of the same call, where it was cut
  bool over = false;
  std::exception_ptr trouble = nullptr;
};

class ProgressEngine {
 public:
  ProgressEngine(Clock& clock, bool oversubscribed, double timeout_seconds);

  void progress();  // of everything that is not over
  void poll();      // the same, for callers that do not wait; now and then it looks for trouble, as a wait does
  void add(Request::PendingCall* call) { calls_.push_back(call); }
  void remove(const Request::PendingCall* call) { std::erase(calls_, call); }
  std::vector<Request::PendingCall*> calls_of(const Communicator::State* group) const;
  Clock& clock() const { return waiting_.clock; }

  // Waits until the call is over, and throws its trouble. If the wait itself fails, the call's group gives up.
  void finish(Request::PendingCall& call, bool briefly);

 private:
  void examine();
  std::uint64_t moved() const;

  Waiting waiting_, briefly_;
  std::uint64_t polls_ = 0;
  std::vector<Request::PendingCall*> calls_;  // of one group in their order
};

}  // namespace chorale
