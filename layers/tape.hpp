// The tensors that the forward pass of one micro-batch keeps. The backward pass takes the tensors in reverse order.
//
// Some kept tensors, such as the output of a norm or an activation function, can be recomputed from other kept tensors.
// Under selective recomputation, the layer that computes such a tensor registers a recipe. The layer that keeps the tensor
// then stores the recipe instead of the tensor. Neither of these two layers needs to know the other.
#pragma once
#include <any>
#include <functional>
#include <utility>
#include <vector>

#include "src/memory/tensor.hpp"

namespace chorale {

class Tape {
 public:
  using Recipe = std::function<Tensor()>;

  explicit Tape(bool selective = false) : selective_(selective) {}

  bool selective() const { return selective_; }
  void keep(const Tensor& tensor);
  Tensor take();  // removes and returns the newest tensor; recomputes it if only its recipe was kept

  // A note is a kept value that only the host reads, such as the number of rows per expert. Like tensors, notes are taken in
  // reverse order.
  void note(std::any note) { notes_.push_back(std::move(note)); }
  template <class T>
  T take_note() {
    require(!notes_.empty(), "the backward pass takes more notes from the tape than the forward pass left");
    T newest = std::any_cast<T>(std::move(notes_.back()));
    notes_.pop_back();
    return newest;
  }

  // Under selective recomputation, the next `keep` of this tensor stores the recipe instead of the tensor.
  void can_be_made_again(const Tensor& tensor, Recipe recipe);
  // Returns the recipe of this tensor if the next `keep` would store the recipe. Otherwise returns an empty function. A
  // layer that keeps its input twice registers the recipe again between the two calls.
  Recipe recipe_of(const Tensor& tensor) const { return recipe_ && tensor.storage() == made_ ? recipe_ : Recipe(); }
  bool empty() const { return kept_.empty() && notes_.empty(); }

 private:
  struct Kept {
    Tensor tensor;
    Recipe recipe;
  };
  std::vector<Kept> kept_;
  std::vector<std::any> notes_;
  const void* made_ = nullptr;  // the storage of the tensor that recipe_ recomputes
  Recipe recipe_;
  bool selective_;
};

}  // namespace chorale
