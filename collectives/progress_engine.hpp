// The calls that a rank has in flight, and their progress. There is no helper thread: a rank that waits moves all of its
// calls, on every group of the worlds that share the engine.
#pragma once
#include <vector>

#include "collectives/backends/transport.hpp"
#include "collectives/communicator.hpp"
#include "src/base/wait.hpp"

namespace chorale {

struct Route;

// One run of one operation, from the call until it is over.
struct Request::PendingCall {
  // A started call keeps its group alive. Destruction runs in reverse: the operation, then the group, then a pair's parent.
  std::shared_ptr<Communicator::State> keeps_parent = nullptr, keeps_group = nullptr;
  Communicator::State* group = nullptr;
  std::shared_ptr<Route> route = nullptr;  // survives when the group forgets it
  bool blocking = false;                   // a native call may block: see Communicator::block_in_native
  void *input = nullptr, *output = nullptr;
  std::unique_ptr<Operation> operation = nullptr;
  std::uint64_t sequence = 0;         // 0: not begun yet
  PendingCall* next_piece = nullptr;  // of the same call, if it was cut
  bool over = false;
  std::exception_ptr trouble = nullptr;
};

class ProgressEngine {
 public:
  ProgressEngine(Clock& clock, bool oversubscribed, double timeout_seconds);

  void progress();  // moves all calls that are not over
  void poll();      // the same, for callers that do not wait; looks for errors now and then, as a wait does
  void add(Request::PendingCall* call) { calls_.push_back(call); }
  void remove(const Request::PendingCall* call) { std::erase(calls_, call); }
  std::vector<Request::PendingCall*> calls_of(const Communicator::State* group) const;
  Clock& clock() const { return waiting_.clock; }

  // Waits until the call is over, and throws its error. If the wait itself fails, the call's group gives up.
  void finish(Request::PendingCall& call, bool briefly);

 private:
  void examine();
  std::uint64_t moved() const;

  Waiting waiting_, briefly_;
  std::uint64_t polls_ = 0;
  std::vector<Request::PendingCall*> calls_;  // in order within each group
};

}  // namespace chorale
