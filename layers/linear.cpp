#include "layers/linear.hpp"

namespace chorale {

Linear::Linear(std::string name, const Options& o) : Layer(std::move(name)), cut_(o.cut), block_(o.block) {
  weight_ = std::make_shared<Parameter>(Parameter{.name = name_ + ".weight",
                                                  .shape = {o.inputs, o.outputs},
                                                  .deviation = o.deviation,
                                                  .after_attention = o.after_attention});
  const bool rows = cut_ == Cut::rows;
  const std::int64_t cut = rows ? o.inputs : o.outputs;
  o.sharding.cut(*weight_, rows ? 0 : 1, block_);
  if (o.bias) {
    bias_ = std::make_shared<Parameter>(
        Parameter{.name = name_ + ".bias", .shape = {o.outputs}, .decays = false, .sum = SumOf::token_gradients});
    o.sharding.cut(*bias_, 0, block_);
  }
  sum_ = {.name = name_ + (rows ? " output" : " input gradient"),
          .sum = rows ? SumOf::activations : SumOf::input_gradients,
          .addends = (cut + block_ - 1) / block_};
}

std::function<Tensor()> start_block_product(const Tensor& x, const Tensor& w, bool transposed, std::int64_t block,
                                            SumSite& site, Context& context) {
  const DType type = context.numerics.partial_type(context.compute);
  const Tensor partial = context.typed({x.dim(0), w.dim(transposed ? 0 : 1)}, type,
                                       type == context.compute ? Category::activations : Category::workspace);
  context.numerics.partial_product(x, w, transposed, block, partial, site, context.queue);
  context.look(site.sum == SumOf::activations ? "partial output" : "partial input gradient",
               site.name.substr(0, site.name.find(' ')), partial);
  return context.boundary->start_sum(partial, site, context);
}

Tensor Linear::forward(const Tensor& x, Context& context) {
  if (context.tape) context.tape->keep(x);
  if (cut_ == Cut::rows) return start_block_product(x, weight_->value, false, block_, sum_, context)();
  const Tensor all = context.boundary->whole(x, context), y = context.tensor({all.dim(0), weight_->value.dim(1)});
  context.numerics.product(all, weight_->value, false, bias_ ? &bias_->value : nullptr, y, context.queue);
  return y;
}

Tensor Linear::backward(const Tensor& dy, Context& context) {
  const Tensor x = context.tape->take();
  return cut_ == Cut::rows ? backward_rows(x, dy, context) : backward_columns(x, dy, context);
}

// dW and db are computed while dx is summed over ranks. If the pipeline schedule splits backward passes, as ZB-H1 does,
// weight_gradient() computes dW and db later, and no computation overlaps the sum.
Tensor Linear::backward_columns(const Tensor& x, const Tensor& dy, Context& context) {
  const auto dx = start_block_product(dy, weight_->value, true, block_, sum_, context);
  context.weight_gradient([this, x, dy, &context] {
    context.numerics.add_outer(context.boundary->whole(x, context), dy, context.leaves(), weight_->gradient, weight_->site,
                               context.queue);
    context.ready(*weight_);
    if (!bias_) return;
    context.numerics.add_columns(dy, bias_->gradient, bias_->site, context.queue);
    context.ready(*bias_);
  });
  return dx();
}

// No bias is added here, because Residual adds the bias of a layer that is split by rows (linear.hpp).
Tensor Linear::backward_rows(const Tensor& x, const Tensor& dy, Context& context) {
  const Tensor all = context.boundary->whole(dy, context), dx = context.tensor({all.dim(0), weight_->value.dim(0)});
  context.numerics.product(all, weight_->value, true, nullptr, dx, context.queue);
  context.weight_gradient([this, x, all, &context] {
    context.numerics.add_outer(x, all, context.leaves(), weight_->gradient, weight_->site, context.queue);
    context.ready(*weight_);
  });
  return dx;
}

void Linear::each_parameter(const std::function<void(const ParameterPointer&)>& visit) const {
  visit(weight_);
  if (bias_) visit(bias_);
}

void Linear::each_site(const std::function<void(SumSite&)>& visit) { visit(sum_); }

Keeps Linear::keeps(std::int64_t rows, const Context& context) const {
  const std::int64_t kept = cut_ == Cut::rows ? rows : context.boundary->rows(rows);
  return {.input = kept * weight_->local_shape()[0] * size_of(context.compute)};
}

}  // namespace chorale
