#include "layers/norm.hpp"

namespace chorale {

Norm::Norm(std::string name, NormKind kind, std::int64_t width, double epsilon)
    : Layer(std::move(name)), kind_(kind), width_(width), epsilon_(epsilon) {
  const auto parameter = [&](const char* part, double start) {
    return std::make_shared<Parameter>(Parameter{.name = name_ + part,
                                                 .shape = {width},
                                                 .start = start,
                                                 .decays = false,
                                                 .sum = SumOf::token_gradients,
                                                 .of_stream = true});
  };
  gain_ = parameter(".gain", 1);
  if (kind == NormKind::layer) shift_ = parameter(".shift", 0);
}

Tensor Norm::normalize(const Tensor& x, const Tensor& stats, Context& context) const {
  const Tensor y = context.tensor(x.shape());
  norm_forward(kind_, x, gain_->value, shift_ ? &shift_->value : nullptr, epsilon_, y, stats, context.queue);
  return y;
}

Tensor Norm::forward(const Tensor& x, Context& context) {
  const Tensor stats = context.typed({x.dim(0), 2}, context.statistics());
  const Tensor y = normalize(x, stats, context);
  if (context.tape) {
    context.tape->keep(x);
    context.tape->keep(stats);
    context.tape->can_be_made_again(y, [this, x, stats, &context] { return normalize(x, stats, context); });
  }
  return y;
}

Tensor Norm::backward(const Tensor& dy, const Tensor* added, Context& context) {
  const Tensor stats = context.tape->take();
  const Tensor x = context.tape->take();
  const Tensor dx = context.tensor(x.shape());
  norm_backward(kind_, dy, x, gain_->value, stats, added, dx, context.queue);
  context.weight_gradient([this, dy, x, stats, &context] {
    context.numerics.add_norm_gradients(kind_, dy, x, stats, gain_->gradient, shift_ ? &shift_->gradient : nullptr,
                                        gain_->site, context.queue);
    context.ready(*gain_);
    if (shift_) context.ready(*shift_);
  });
  return dx;
}

void Norm::each_parameter(const std::function<void(const ParameterPointer&)>& visit) const {
  visit(gain_);
  if (shift_) visit(shift_);
}

Keeps Norm::keeps(std::int64_t rows, const Context& context) const {
  const std::int64_t here = context.boundary->rows(rows);
  return {.input = here * width_ * size_of(context.compute),
          .inside = here * 2 * size_of(context.statistics()),
          .output_can_be_made_again = true};
}

}  // namespace chorale
