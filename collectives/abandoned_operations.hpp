// Calls that failed, and how a rank gives up on them so that no memory is touched behind its back. Once a call has thrown, its caller may
// free the buffers, while a message is still on its way to them or a slow peer is still at work in them.
//
//   an error ──▶ abandon: take back receives that nothing has met, and do no more of any call
//            ──▶ poison: tell the peers why
//            ──▶ wait until no message or peer can write to a buffer any more      at most 30 s, else the rank ends
//            ──▶ close: tell the peers that this rank has let go
//            ──▶ wait until no peer can read a buffer any more                     at most 5 s
//            ──▶ the caller sees the error
//
// A peer lets go when it looks at its letters (or boards), which it does whenever it waits. A rank whose memory may still
// be written to ends itself: an error that ends the job is better than wrong numbers in a job that goes on. Late reads do
// no harm: the reader's call has failed as well.
#pragma once
#include <memory>
#include <vector>

#include "collectives/backends/transport.hpp"
#include "src/base/clock.hpp"

namespace chorale {

class AbandonedOperations {
 public:
  ~AbandonedOperations();  // what peers may still read stays in memory for good
  void add(std::unique_ptr<Operation> operation) { operations_.push_back(std::move(operation)); }
  void let_go(Group& group, Clock& clock, const std::string& why) noexcept;

 private:
  bool any(bool (Operation::*question)() noexcept) noexcept;
  std::vector<std::unique_ptr<Operation>> operations_;
};

}  // namespace chorale
