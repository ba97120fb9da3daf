// The output layer of the model. It computes the logits over the vocabulary, and their cross entropy with the next tokens.
// The gradient of the logits overwrites the logits to save memory. For the backward pass, the head keeps its input and the
// gradient of the logits.
//
// The columns of the logits can be split between ranks. The ranks then combine three values per row: the maximum, the sum of
// exponentials and the "hit", which is the logit of the row's target. `forward` adds the losses of all rows to context.loss.
// The sum is divided by the step's number of tokens later.
#pragma once
#include <chorale/model.hpp>
#include "layers/layer.hpp"

namespace chorale {

class Head final : public Layer {
 public:
  Head(const ModelShape& shape, const Sharding& sharding,
       ParameterPointer table);  // creates a table [V,h] if `table` is null
  // Must be called for a tied table if the embedding is on a different pipeline stage. The stage of the head then holds a
  // copy of the table. The gradient of the copy includes only the head's contribution.
  void own_table() { tied_ = false; }

  // Returns the loss of each row. In generation, forward() instead returns this rank's columns of the newest row's logits.
  Tensor forward(const Tensor& x, Context& context) override;
  Tensor backward(const Tensor& unused, Context& context) override;
  Tensor logits(const Tensor& x, Context& context) const;
  const SumSite& loss_site() const { return losses_; }
  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override;
  void each_site(const std::function<void(SumSite&)>& visit) override;
  Keeps keeps(std::int64_t rows, const Context& context) const override;

 private:
  ParameterPointer table_;
  bool tied_;
  std::int64_t block_;  // tokens per block of the vocabulary
  SumSite exponentials_, losses_, sum_;
};

}  // namespace chorale
