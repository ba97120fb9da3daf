// Balances experts with the choice counts of complete steps (choice_counts.hpp). These counts are integers that do not
// depend on the layout, so the balance state does not depend on the layout either.
//
//   bias       After each step, b_e += rate · sign(mean − n_e). Here n_e is the number of tokens that chose expert e, and
//              `mean` is the mean of n over the block's experts. Routers choose by score + b_e (DeepSeek-V3; Wang et al.
//              2024).
//   previous   n_e of the newest step. The balance loss of the next step computes the experts' shares f_e from these n_e.
//
// Biases and previous counts are part of the training state and of checkpoints, though they have no gradients. Only a
// training step updates the biases and counts. Every rank stores the biases and counts of all blocks, [blocks of experts,
// E], because every rank gets the counts of all blocks. The biases and counts are in the same memory as the parameters, so
// that device kernels can read them. The host updates the biases and counts.
#pragma once
#include <vector>

#include "layers/choice_counts.hpp"
#include "layers/parameter.hpp"

namespace chorale {

class RouterBalance {
 public:
  RouterBalance(const ModelShape& shape, Allocator& memory);

  // The biases and the previous counts of one block, [E]. A tensor is empty if the model does not use it.
  Tensor bias(std::int64_t block) const { return of(bias_, block); }          // f32
  Tensor previous(std::int64_t block) const { return of(previous_, block); }  // i64; zeros before the first step

  void step(const ChoiceCounts& counts);

  std::vector<ParameterPointer> state() const;     // names, shapes and values of the biases and counts
  ParameterPointer bias() const { return bias_; }  // null if there is no bias

 private:
  static Tensor of(const ParameterPointer& all, std::int64_t block) {
    return all ? all->value.narrow(block, 1).view({all->shape[1]}) : Tensor();
  }

  double rate_;
  ParameterPointer bias_, previous_;
};

}  // namespace chorale
