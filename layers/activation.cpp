// The activation function of an MLP: GELU or SwiGLU. SwiGLU halves the number of columns. For the backward pass, the layer
// keeps only its input.
#include "layers/layers.hpp"

#include "src/math/activation.hpp"

namespace chorale {
namespace {

using Kind = ActivationKind;

class Activation final : public Layer {
 public:
  Activation(std::string name, Kind kind, std::int64_t columns, std::int64_t block)
      : Layer(std::move(name)), kind_(kind), columns_(columns), block_(block) {}

  Tensor forward(const Tensor& x, Context& context) override {
    const Tensor y = apply(x, context);
    if (context.tape) {
      context.tape->keep(x);
      context.tape->can_be_made_again(y, [this, x, &context] { return apply(x, context); });
    }
    return y;
  }

  Tensor backward(const Tensor& dy, Context& context) override {
    const Tensor x = context.tape->take();
    const Tensor dx = context.tensor(x.shape());
    if (kind_ == Kind::gelu)
      gelu_backward(dy, x, dx, context.queue);
    else
      swiglu_backward(dy, x, block_, dx, context.queue);
    return dx;
  }

  Keeps keeps(std::int64_t rows, const Context& context) const override {
    const std::int64_t inputs = kind_ == Kind::swiglu ? 2 * columns_ : columns_;
    return {.input = rows * inputs * size_of(context.compute), .output_can_be_made_again = true};
  }

 private:
  Tensor apply(const Tensor& x, Context& context) const {
    const Tensor y = context.tensor({x.dim(0), columns_});
    if (kind_ == Kind::gelu)
      gelu_forward(x, y, context.queue);
    else
      swiglu_forward(x, block_, y, context.queue);
    return y;
  }

  Kind kind_;
  std::int64_t columns_, block_;
};

}  // namespace

LayerPointer activation_layer(std::string name, ActivationKind kind, std::int64_t columns, std::int64_t block) {
  return std::make_unique<Activation>(std::move(name), kind, columns, block);
}

}  // namespace chorale
