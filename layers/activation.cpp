#include "layers/activation.hpp"

#include "src/math/activation.hpp"

namespace chorale {

Tensor Activation::apply(const Tensor& x, Context& context) const {
  const Tensor y = context.tensor({x.dim(0), columns_});
  if (kind_ == Kind::gelu)
    gelu_forward(x, y, context.queue);
  else
    swiglu_forward(x, block_, y, context.queue);
  return y;
}

Tensor Activation::forward(const Tensor& x, Context& context) {
  const Tensor y = apply(x, context);
  if (context.tape) {
    context.tape->keep(x);
    context.tape->can_be_made_again(y, [this, x, &context] { return apply(x, context); });
  }
  return y;
}

Tensor Activation::backward(const Tensor& dy, Context& context) {
  const Tensor x = context.tape->take();
  const Tensor dx = context.tensor(x.shape());
  if (kind_ == Kind::gelu)
    gelu_backward(dy, x, dx, context.queue);
  else
    swiglu_backward(dy, x, block_, dx, context.queue);
  return dx;
}

Keeps Activation::keeps(std::int64_t rows, const Context& context) const {
  const std::int64_t inputs = kind_ == Kind::swiglu ? 2 * columns_ : columns_;
  return {.input = rows * inputs * size_of(context.compute), .output_can_be_made_again = true};
}

}  // namespace chorale
