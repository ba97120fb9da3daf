// How a rank gives up on the calls of a group after an error, so that no peer touches their buffers afterwards. Once a call
// has thrown, its caller may free the buffers. But a message may still be on its way to a buffer, or a slow peer may still
// read or write that buffer.
//
//   an error ──▶ abandon: cancel receives that no message has matched, and stop progress on all calls
//            ──▶ poison: tell the peers why
//            ──▶ wait until no message or peer can write to a buffer any more      at most 30 s, else the rank ends
//            ──▶ close: tell the peers that no message is written to this rank's buffers any more
//            ──▶ wait until no peer can read a buffer any more                     at most 5 s
//            ──▶ the caller sees the error
//
// A waiting peer regularly checks whether a rank gave up: by control messages (message/control.hpp) or, on mapped memory, in
// shared flags (mapped/flag_page.hpp). The peer then gives up in the same way. If a buffer may still be written to after 30
// s, this rank ends its process. An error that ends the job is better than wrong results. Late reads are harmless, because
// the reader's call has failed too.
#pragma once
#include <memory>
#include <vector>

#include <chorale/clock.hpp>
#include "collectives/transport/transport.hpp"

namespace chorale {

class AbandonedOperations {
 public:
  ~AbandonedOperations();  // leaks operations whose memory peers may still access
  void add(std::unique_ptr<Operation> operation) { operations_.push_back(std::move(operation)); }
  void cancel() noexcept;  // only the first of these steps, for a rank that ends at once
  void let_go(Group& group, Clock& clock, const std::string& why) noexcept;  // the sequence above

 private:
  bool any(bool (Operation::*question)() noexcept) noexcept;  // whether `question` is true of at least one operation
  std::vector<std::unique_ptr<Operation>> operations_;
};

}  // namespace chorale
