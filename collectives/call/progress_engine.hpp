// The progress engine holds the calls that a rank has in flight. There is no helper thread. While a rank waits for one call,
// the engine makes progress on all calls of the rank. These calls can belong to any group of any world that shares the
// engine.
#pragma once
#include <vector>

#include "collectives/call/communicator.hpp"
#include "collectives/transport/transport.hpp"
#include "src/base/guard/flight.hpp"
#include "src/base/wait.hpp"

namespace chorale {

struct Route;

// The state of a call from its start to its completion. If the call was split, each segment has its own PendingCall.
struct Request::PendingCall {
  // A started call keeps its group alive. If the group is a pair (two ranks that exchange messages), the call also keeps the
  // pair's parent group alive. Members are destroyed from last to first: operation, group, parent.
  std::shared_ptr<Communicator::State> keeps_parent = nullptr, keeps_group = nullptr;
  Communicator::State* group = nullptr;
  std::shared_ptr<Route> route = nullptr;  // keeps the route alive if the group drops the route
  bool blocking = false;                   // whether a native call may block (see block_in_native)
  void *input = nullptr, *output = nullptr;
  std::unique_ptr<Operation> operation = nullptr;
  std::uint64_t sequence = 0;         // 0: not begun yet
  PendingCall* next_piece = nullptr;  // the next segment of the same call, if the call was split
  bool over = false;
  std::exception_ptr trouble = nullptr;  // the error that this call ended with
  std::uint64_t ticket = 0;              // identifies the call in this rank's flight recorder
};

class ProgressEngine {
 public:
  // `flight` is the rank's flight recorder, which records the calls and tells waiting calls whether another rank has failed.
  // `flight` can be null.
  ProgressEngine(Clock& clock, bool oversubscribed, double timeout_seconds, Flight* flight);

  void progress();  // makes progress on all unfinished calls
  void poll();      // progress() for callers that do not wait; every 256th call also checks for errors of peers
  void add(Request::PendingCall* call) { calls_.push_back(call); }
  void remove(const Request::PendingCall* call) { std::erase(calls_, call); }
  std::vector<Request::PendingCall*> calls_of(const Communicator::State* group) const;
  Clock& clock() const { return waiting_.clock; }
  Flight* flight() const { return flight_; }

  // Waits until the call has completed, and throws the call's error if there is one. If the wait itself fails, for example
  // by a timeout, this rank gives up on the call's group. `briefly`: waits at most 2 s.
  void finish(Request::PendingCall& call, bool briefly);

 private:
  void examine();
  void tell_guard();
  std::uint64_t moved() const;

  Waiting waiting_, briefly_;
  Flight* const flight_;
  const double patience_seconds_;  // the time limit that this rank reports to the guard process
  std::uint64_t polls_ = 0;
  const Request::PendingCall* finishing_ = nullptr;  // the most recent call for which finish() has waited
  std::vector<Request::PendingCall*> calls_;         // the calls of one group are in call order
};

}  // namespace chorale
