// A branch of the residual stream, which is half a transformer block: y = x + dropout(body(norm(x)) + bias).
//
//   x ──┬────────────────────────────────────────────── + ── y
//       └─ norm ─ body (linear … linear) ─ + bias ─ dropout ─┘
//
// The bias belongs to the last linear layer of the body. With tensor parallelism, that layer's output is a sum over ranks.
// Residual adds the bias after the sum, so that it is added once. For the backward pass, the norm and the body keep tensors;
// the residual sum itself keeps none.
#include "layers/layers.hpp"

#include <algorithm>

#include "src/math/kernel_timer.hpp"

namespace chorale {
namespace {

class Residual final : public Layer {
 public:
  Residual(std::unique_ptr<Norm> norm, LayerPointer body, const ResidualOptions& o)
      : Layer(body->name()), norm_(std::move(norm)), body_(std::move(body)), dropout_(o.dropout), site_(o.site) {
    if (!o.bias.empty())
      bias_ = std::make_shared<Parameter>(
          Parameter{.name = o.bias, .shape = {o.width}, .decays = false, .sum = SumOf::token_gradients, .of_stream = true});
  }

  Tensor forward(const Tensor& x, Context& context) override {
    const Tensor normal = [&] {
      const LayerSpan span(context.queue, norm_->name());
      return norm_->forward(x, context);
    }();
    context.look("output", norm_->name(), normal);
    const Tensor y = body_->forward(normal, context);  // no layer keeps y, so the residual sum can overwrite y
    add_residual(y, bias_ ? &bias_->value : nullptr, context.dropout(dropout_, site_, context.stream), x, y, context.queue);
    return y;
  }

  Tensor backward(const Tensor& dy, Context& context) override {
    const Dropout drop = context.dropout(dropout_, site_, context.stream);
    Tensor branch = dy;
    if (drop.probability > 0) {
      branch = context.tensor(dy.shape());
      chorale::dropout(dy, drop, branch, context.queue);
    }
    if (bias_)
      context.weight_gradient([this, branch, &context] {
        context.numerics.add_columns(branch, bias_->gradient, bias_->site, context.queue);
        context.ready(*bias_);
      });
    const Tensor normal = body_->backward(branch, context);
    const LayerSpan span(context.queue, norm_->name());
    return norm_->backward(normal, &dy, context);
  }

  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override {
    norm_->each_parameter(visit);
    body_->each_parameter(visit);
    if (bias_) visit(bias_);
  }

  void each_site(const std::function<void(SumSite&)>& visit) override { body_->each_site(visit); }

  Keeps keeps(std::int64_t rows, const Context& context) const override {
    const Keeps norm = norm_->keeps(rows, context), body = body_->keeps(rows, context);
    const bool recipe = context.selective() && norm.output_can_be_made_again;
    return {.input = norm.input,
            .inside = norm.inside + std::max(norm.output, recipe ? 0 : body.input) + body.inside + body.output,
            .at_most = body.at_most};
  }

 private:
  std::unique_ptr<Norm> norm_;
  LayerPointer body_;
  ParameterPointer bias_;
  double dropout_;
  std::uint32_t site_;
};

}  // namespace

LayerPointer residual_layer(std::unique_ptr<Norm> norm, LayerPointer body, const ResidualOptions& options) {
  return std::make_unique<Residual>(std::move(norm), std::move(body), options);
}

}  // namespace chorale
