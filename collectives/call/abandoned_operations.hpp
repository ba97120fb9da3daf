// After an error, a rank gives up on all calls of the group. The procedure ensures that no peer accesses the calls' buffers
// afterwards. Once a call has thrown, its caller is free to deallocate the buffers. At that time, a message could still be
// in flight to a buffer, or a slow peer could still access the buffer.
//
//   an error ──▶ abandon: cancel unmatched receives, and stop progress on all calls
//            ──▶ poison: tell the peers why
//            ──▶ wait until no message or peer can write to a buffer any more      at most 30 s, else the rank ends
//            ──▶ close: tell the peers that no message is written to this rank's buffers any more
//            ──▶ wait until no peer can read a buffer any more                     at most 5 s
//            ──▶ the caller sees the error
//
// A waiting peer regularly checks whether a rank gave up. The waiting peer learns this from control messages
// (message/control.hpp) or, on mapped memory, from shared flags (mapped/flag_page.hpp). The peer then gives up in the same
// way. If a peer can still write to a buffer after 30 s, this rank ends its process. Ending the job is better than
// corrupting memory. A late read by a peer is harmless, because the peer's call has failed too.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include <chorale/clock.hpp>
#include "collectives/transport/transport.hpp"

namespace chorale {

class AbandonedOperations {
 public:
  ~AbandonedOperations();  // leaks operations with memory that peers can still access
  void add(std::unique_ptr<Operation> operation) { operations_.push_back(std::move(operation)); }
  void cancel() noexcept;  // runs only the step "abandon"; used by a rank that ends immediately
  // Runs all steps of the picture at the top of this file. If `lost` becomes true, a peer is dead and this rank is about to
  // end, so the waits end too.
  void let_go(Group& group, Clock& clock, const std::string& why, const std::function<bool()>& lost) noexcept;

 private:
  bool any(bool (Operation::*question)() noexcept) noexcept;  // whether `question` returns true for at least one operation
  std::vector<std::unique_ptr<Operation>> operations_;
};

}  // namespace chorale
