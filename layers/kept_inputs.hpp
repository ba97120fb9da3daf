// The inputs of blocks that one micro-batch keeps for full recomputation, in a slow tier of memory (ZeRO-R, Rajbhandari et
// al. 2020). They are a stack, as the tape is. Each is written once and read once:
//
//   forward     F0 ──▶ F1 ──▶ F2 ──▶ F3          backward    B3 ──▶ B2 ──▶ B1 ──▶ B0
//   writes      x0 ─────┐                        reads    x3 x2     x1     x0
//                x1 └───┼──┐                              xi−1 is read while Bi computes
//                  at most two in flight
//
// Memory holds two inputs that are being written, or the input of the block at work and the next one, whatever the number
// of blocks and of micro-batches in flight. The copies begin on a page, so that the file is written in the background.
#pragma once
#include <deque>
#include <vector>

#include "src/tier/staged.hpp"

namespace chorale {

class KeptInputs {
 public:
  // The bytes that move are added to `traffic`.
  KeptInputs(Allocator& memory, Allocator& tier, TierTraffic& traffic) : memory_(memory), tier_(tier), traffic_(traffic) {}

  void keep(const Tensor& x);  // copies it; its write goes on after the return
  void finish_writes();        // a forward pass ends with this: afterwards, memory holds no input
  void read_ahead();           // starts to read the newest input, unless it is being read or there is none
  Tensor take();               // removes and returns the newest input, and reads ahead
  bool empty() const { return there_.empty(); }

 private:
  static constexpr std::size_t most_writes = 2;
  Allocator &memory_, &tier_;
  TierTraffic& traffic_;
  std::vector<Tensor> there_;  // in the tier. Declared before the copies, whose destructors wait for what is in flight
  std::deque<Staged> writes_;  // of the newest inputs
  Staged read_;                // of the newest input
};

}  // namespace chorale
