// LayerNorm or RMSNorm over the width of each row. For the backward pass, the layer keeps its input and two values per row.
// The layer's output can be recomputed from its input and these two values.
#pragma once
#include "layers/layer.hpp"

namespace chorale {

class Norm final : public Layer {
 public:
  Norm(std::string name, NormKind kind, std::int64_t width, double epsilon);

  Tensor forward(const Tensor& x, Context& context) override;
  Tensor backward(const Tensor& dy, Context& context) override { return backward(dy, nullptr, context); }
  // Returns the gradient of the layer's input plus `added`, the gradient that reaches the input by a second path.
  Tensor backward(const Tensor& dy, const Tensor* added, Context& context);
  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override;
  Keeps keeps(std::int64_t rows, const Context& context) const override;

 private:
  Tensor normalize(const Tensor& x, const Tensor& stats, Context& context) const;
  NormKind kind_;
  std::int64_t width_;
  double epsilon_;
  ParameterPointer gain_, shift_;
};

}  // namespace chorale
