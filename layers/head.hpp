// The end of the model: logits over the vocabulary and their cross entropy with the next tokens. The gradient of the logits
// overwrites the logits, so both use the same memory. For the backward pass the head keeps its input and that gradient.
//
// The columns of the logits may be split between ranks. The ranks then combine three values per row: the maximum, the sum
// of exponentials and the "hit", the logit of the row's target. `forward` adds the losses of all rows to context.loss. The
// division by the step's number of tokens comes later.
#pragma once
#include "layers/layer.hpp"
#include "layers/shape.hpp"

namespace chorale {

class Head final : public Layer {
 public:
  Head(const ModelShape& shape, const Sharding& sharding,
       ParameterPointer table);  // creates a table [V,h] if `table` is null
  // For a tied table whose embedding is on another pipeline stage. This stage then holds a copy of the table, and the
  // copy's gradient is only the head's contribution.
  void own_table() { tied_ = false; }

  const std::string& name() const override { return name_; }
  // Returns each row's loss. In generation it returns the newest row's logits instead: this rank's columns of them.
  Tensor forward(const Tensor& x, Context& context) override;
  Tensor backward(const Tensor& unused, Context& context) override;
  Tensor logits(const Tensor& x, Context& context) const;
  const SumSite& loss_site() const { return losses_; }
  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override;
  void each_site(const std::function<void(SumSite&)>& visit) override;
  Keeps keeps(std::int64_t rows, const Context& context) const override;

 private:
  std::string name_ = "head";
  ParameterPointer table_;
  bool tied_;
  std::int64_t block_;  // tokens per block of the vocabulary
  SumSite exponentials_, losses_, sum_;
};

}  // namespace chorale
