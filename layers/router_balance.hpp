// Balancing of experts by the counts of whole steps (choice_counts.hpp). These counts are integers that are the same on
// every layout, so the balanced models are the same too.
//
//   bias       After each step, b_e += rate · sign(mean − n_e), where n_e tokens chose expert e, and `mean` is n's mean over
//              the experts of the block. Routers choose by score + b_e (DeepSeek-V3; Wang et al. 2024).
//   previous   n_e of the newest step. The balance loss of the next step takes its shares f_e from it.
//
// Both are part of the training state and of checkpoints, though they have no gradients. Only a training step updates them.
// Every rank has them for all blocks, [blocks of experts, E], because the counts of all blocks reach every rank. They are in
// the same memory as the parameters, so device kernels read them there. The host updates them.
#pragma once
#include <vector>

#include "layers/choice_counts.hpp"
#include "layers/parameter.hpp"

namespace chorale {

class RouterBalance {
 public:
  RouterBalance(const ModelShape& shape, Allocator& memory);

  // The biases and the previous counts of one block, [E]. Empty if the model does not use them.
  Tensor bias(std::int64_t block) const { return of(bias_, block); }          // f32
  Tensor previous(std::int64_t block) const { return of(previous_, block); }  // i64; zeros before the first step

  void step(const ChoiceCounts& counts);

  std::vector<ParameterPointer> state() const;     // their names, shapes and values
  ParameterPointer bias() const { return bias_; }  // null: none

 private:
  static Tensor of(const ParameterPointer& all, std::int64_t block) {
    return all ? all->value.narrow(block, 1).view({all->shape[1]}) : Tensor();
  }

  double rate_;
  ParameterPointer bias_, previous_;
};

}  // namespace chorale
