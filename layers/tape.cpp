#include "layers/tape.hpp"

namespace chorale {

void Tape::keep(const Tensor& tensor) {
  if (recipe_ && tensor.storage() == made_)
    kept_.push_back({{}, std::exchange(recipe_, nullptr)});
  else
    kept_.push_back({tensor, {}});
}

Tensor Tape::take() {
  require(!kept_.empty(), "the backward pass takes more tensors from the tape than the forward pass kept");
  Kept newest = std::move(kept_.back());
  kept_.pop_back();
  return newest.recipe ? newest.recipe() : newest.tensor;
}

void Tape::can_be_made_again(const Tensor& tensor, Recipe recipe) {
  if (!selective_) return;
  made_ = tensor.storage();
  recipe_ = std::move(recipe);
}

}  // namespace chorale
