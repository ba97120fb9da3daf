// The block inputs that one micro-batch keeps for full recomputation, in a slow memory tier (ZeRO-R, Rajbhandari et al.
// 2020). The inputs form a stack, like the tape. Each input is written once and read once:
//
//   forward     F0 ──▶ F1 ──▶ F2 ──▶ F3          backward    B3 ──▶ B2 ──▶ B1 ──▶ B0
//   writes      x0 ─────┐                        reads    x3 x2     x1     x0
//                x1 └───┼──┐                              xi−1 is read while Bi computes
//                  at most two in flight
//
// Memory holds at most two inputs, regardless of the number of blocks and of micro-batches in flight. In the forward pass,
// these are the inputs that are being written to the tier. In the backward pass, they are the inputs of the current block
// and of the block whose backward pass comes next. The copies in memory are page-aligned. Page alignment allows asynchronous
// writes if the tier is a file.
#pragma once
#include <deque>
#include <vector>

#include "src/tier/staged.hpp"

namespace chorale {

class KeptInputs {
 public:
  // Adds the numbers of written and read bytes to `traffic`.
  KeptInputs(Allocator& memory, Allocator& tier, TierTraffic& traffic) : memory_(memory), tier_(tier), traffic_(traffic) {}

  void keep(const Tensor& x);  // copies x; the write to the tier can continue after the call returns
  void finish_writes();        // called at the end of a forward pass; afterwards, memory holds no input
  void read_ahead();           // starts to read the newest input, unless the read is already in flight or the stack is empty
  Tensor take();               // removes and returns the newest input, and starts to read the next input
  bool empty() const { return there_.empty(); }

 private:
  static constexpr std::size_t most_writes = 2;
  Allocator &memory_, &tier_;
  TierTraffic& traffic_;
  std::vector<Tensor> there_;  // the inputs in the tier. Declared before the copies, whose destructors wait for transfers in
                               // flight
  std::deque<Staged> writes_;  // writes in flight, for the newest inputs
  Staged read_;                // the read of the newest input
};

}  // namespace chorale
