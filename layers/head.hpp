// The end of the model: logits over the vocabulary and their cross entropy with the next tokens. The gradient of the
// logits replaces them in place, so they take memory only once. Keeps its input and that gradient.
//
// The columns of the logits may be split between ranks, which then combine maxima, sums and hits. `forward` adds the
// rows' losses to context.loss. The division by the step's number of tokens comes later.
#pragma once
#include "layers/layer.hpp"
#include "layers/shape.hpp"

namespace chorale {

class Head final : public Layer {
 public:
  Head(const ModelShape& shape, const Share& share, ParameterPointer table);  // creates its own table [V,h] if given none
  // With the embedding on another rank, this rank has a copy of the table, whose gradient is only the head's part.
  void own_table() { tied_ = false; }

  const std::string& name() const override { return name_; }
  // Returns each row's loss; in generation, this rank's columns of the newest row's logits.
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
  std::int64_t block_;  // of the vocabulary
  SumSite exponentials_, losses_, sum_;
};

}  // namespace chorale
