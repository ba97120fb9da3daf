// The end of the model: logits over the vocabulary and their cross entropy with the next tokens. The gradient of the logits takes
// their place at once, so that they are in memory once; keeps its input and that.
//
// Ranks may each have some of the logits' columns: their maxima, sums and hits are brought together. `forward` adds the summed loss of the rows to context.loss; nothing is divided until the whole step's tokens are counted.
#pragma once
#include "layers/layer.hpp"
#include "layers/shape.hpp"

namespace chorale {

class Head final : public Layer {
 public:
  Head(const ModelShape& shape, const Share& share, ParameterPointer table);  // its own table [V,h] where none is given
  // The embedding is on another rank: here is a copy of its table, whose gradient is the head's part alone.
  void own_table() { tied_ = false; }

  const std::string& name() const override { return name_; }
  // The loss of each row; of generation, the newest row's logits, the columns that are here.
  Tensor forward(const Tensor& x, Context& context) override;
  Tensor backward(const Tensor& unused, Context& context) override;
  Tensor logits(const Tensor& x, Context& context) const;
  const Site& loss_site() const { return losses_; }
  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override;
  void each_site(const std::function<void(Site&)>& visit) override;
  Keeps keeps(std::int64_t rows, const Context& context) const override;

 private:
  std::string name_ = "head";
  ParameterPointer table_;
  bool tied_;
  std::int64_t block_;  // of the vocabulary
  Site exponentials_, losses_, sum_;
};

}  // namespace chorale
