// The activation function of an MLP: GELU or SwiGLU. SwiGLU halves the number of columns. For the backward pass, the layer
// keeps only its input.
#pragma once
#include "layers/layer.hpp"

namespace chorale {

class Activation final : public Layer {
 public:
  enum class Kind { gelu, swiglu };
  // columns: number of output columns. block: only for SwiGLU, whose input alternates between `block` gate columns and
  // `block` up columns.
  Activation(std::string name, Kind kind, std::int64_t columns, std::int64_t block)
      : Layer(std::move(name)), kind_(kind), columns_(columns), block_(block) {}

  Tensor forward(const Tensor& x, Context& context) override;
  Tensor backward(const Tensor& dy, Context& context) override;
  Keeps keeps(std::int64_t rows, const Context& context) const override;

 private:
  Tensor apply(const Tensor& x, Context& context) const;
  Kind kind_;
  std::int64_t columns_, block_;
};

}  // namespace chorale
