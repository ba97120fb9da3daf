// The tensors that the forward pass of one micro-batch keeps. The backward pass takes them in reverse order.
//
// Some kept tensors can be recomputed from others that are kept anyway (the output of a norm or an activation). Under
// selective recomputation the layer that makes such a tensor registers a recipe, and the layer that keeps it stores the
// recipe instead. Neither layer knows of the other.
#pragma once
#include <functional>
#include <vector>

#include "src/memory/tensor.hpp"

namespace chorale {

class Tape {
 public:
  using Recipe = std::function<Tensor()>;

  explicit Tape(bool selective = false) : selective_(selective) {}

  bool selective() const { return selective_; }
  void keep(const Tensor& tensor);
  Tensor take();  // removes and returns the newest tensor, recomputed if only its recipe was kept

  // Under selective recomputation, the next `keep` of this same tensor stores the recipe instead.
  void can_be_made_again(const Tensor& tensor, Recipe recipe);
  bool empty() const { return kept_.empty(); }

 private:
  struct Kept {
    Tensor tensor;
    Recipe recipe;
  };
  std::vector<Kept> kept_;
  const void* made_ = nullptr;  // the storage of the tensor that recipe_ recomputes
  Recipe recipe_;
  bool selective_;
};

}  // namespace chorale
