// What the forward pass keeps for the backward pass, of one micro-batch: tensors, taken in the opposite order.
//
// A kept tensor may be one that can be made again from others that are kept anyway (the output of a norm, of an activation
// function): under selective recomputation whoever makes it says so, and whoever keeps it keeps the recipe instead. Neither knows of the other.
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
  Tensor take();  // the newest; made again if only its recipe was kept

  // The next `keep` of this very tensor may keep the recipe.
  void can_be_made_again(const Tensor& tensor, Recipe recipe);
  bool empty() const { return kept_.empty(); }

 private:
  struct Kept {
    Tensor tensor;
    Recipe recipe;
  };
  std::vector<Kept> kept_;
  const void* made_ = nullptr;  // what the recipe makes
  Recipe recipe_;
  bool selective_;
};

}  // namespace chorale
