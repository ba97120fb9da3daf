#include "layers/linear.hpp"

namespace chorale {

Linear::Linear(std::string name, const Options& o) : name_(std::move(name)), cut_(o.cut), block_(o.block) {
  weight_ = std::make_shared<Parameter>(
      Parameter{.name = name_ + ".weight", .shape = {o.inputs, o.outputs}, .deviation = o.deviation});
  if (o.bias)
    bias_ = std::make_shared<Parameter>(
        Parameter{.name = name_ + ".bias", .shape = {o.outputs}, .decays = false, .sum = SumOf::token_gradients});
  const bool rows = cut_ == Cut::rows;
  const std::int64_t cut = rows ? o.inputs : o.outputs;
  sum_ = {.name = name_ + (rows ? " output" : " input gradient"),
          .sum = rows ? SumOf::activations : SumOf::input_gradients,
          .addends = (cut + block_ - 1) / block_};
}

Tensor block_product(const Tensor& x, const Tensor& w, bool transposed, std::int64_t block, Site& site, Context& context) {
  const std::int64_t outputs = w.dim(transposed ? 0 : 1);
  const Tensor y = context.tensor({x.dim(0), outputs});
  const DType type = context.numerics.partial_type(context.compute);
  const Tensor partial = type == context.compute ? y : context.typed({x.dim(0), outputs}, type, Category::workspace);
  context.numerics.partial_product(x, w, transposed, block, partial, site, context.queue);
  context.numerics.settle(partial, y, site, context.queue);
  return y;
}

Tensor Linear::forward(const Tensor& x, Context& context) {
  if (context.tape) context.tape->keep(x);
  if (cut_ == Cut::rows) return block_product(x, weight_->value, false, block_, sum_, context);
  const Tensor y = context.tensor({x.dim(0), weight_->value.dim(1)});
  context.numerics.product(x, weight_->value, false, bias_ ? &bias_->value : nullptr, y, context.queue);
  return y;
}

Tensor Linear::backward(const Tensor& dy, Context& context) {
  const Tensor x = context.tape->take();
  Tensor dx;
  if (cut_ == Cut::columns) {
    dx = block_product(dy, weight_->value, true, block_, sum_, context);
  } else {
    dx = context.tensor({dy.dim(0), weight_->value.dim(0)});
    context.numerics.product(dy, weight_->value, true, nullptr, dx, context.queue);
  }
  context.weight_gradient([this, x, dy, &context] {
    context.numerics.add_outer(x, dy, context.leaf(), weight_->gradient, weight_->site, context.queue);
    context.ready(*weight_);
    if (!bias_) return;
    context.numerics.add_columns(dy, bias_->gradient, bias_->site, context.queue);
    context.ready(*bias_);
  });
  return dx;
}

void Linear::each_parameter(const std::function<void(const ParameterPointer&)>& visit) const {
  visit(weight_);
  if (bias_) visit(bias_);
}

void Linear::each_site(const std::function<void(Site&)>& visit) { visit(sum_); }

Keeps Linear::keeps(std::int64_t rows, const Context& context) const {
  return {.input = rows * weight_->local_shape()[0] * size_of(context.compute)};
}

}  // namespace chorale
