// The inputs of blocks that one micro-batch keeps for full recomputation, in a slow tier of memory (ZeRO-R, Rajbhandari et
// al. 2020). They form a stack, like the tape. Each is written once and read once:
//
//   forward     F0 ──▶ F1 ──▶ F2 ──▶ F3          backward    B3 ──▶ B2 ──▶ B1 ──▶ B0
//   writes      x0 ─────┐                        reads    x3 x2     x1     x0
//                x1 └───┼──┐                              xi−1 is read while Bi computes
//                  at most two in flight
//
// Memory holds at most two inputs, whatever the number of blocks and of micro-batches in flight. These are two inputs that
// are being written, or the current block's input and the next one. The copies are page-aligned, so that the file is written
// in the background.
#pragma once
#include <deque>
#include <vector>

#include "src/tier/staged.hpp"

namespace chorale {

class KeptInputs {
 public:
  // The bytes written and read are added to `traffic`.
  KeptInputs(Allocator& memory, Allocator& tier, TierTraffic& traffic) : memory_(memory), tier_(tier), traffic_(traffic) {}

  void keep(const Tensor& x);  // copies x; the write continues after the return
  void finish_writes();        // a forward pass ends with this: afterwards, memory holds no input
  void read_ahead();           // starts to read the newest input, unless it is being read or there is none
  Tensor take();               // removes and returns the newest input, and reads ahead
  bool empty() const { return there_.empty(); }

 private:
  static constexpr std::size_t most_writes = 2;
  Allocator &memory_, &tier_;
  TierTraffic& traffic_;
  std::vector<Tensor> there_;  // in the tier. Declared before the copies, whose destructors wait for transfers in flight
  std::deque<Staged> writes_;  // writes in flight, of the newest inputs
  Staged read_;                // read of the newest input
};

}  // namespace chorale
