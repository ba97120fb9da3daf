// A linear map, y = x·W + b, and its two gradients: dx = dy·Wᵀ and dW = xᵀ·dy. The layer keeps x for the backward pass.
//
// Tensor parallelism splits W by columns (a rank has some of the outputs) or by rows (a rank has some of the inputs). A sum
// over the split dimension is first computed block by block on each rank and then over ranks. If W is split by rows, this
// sum is y, in the forward pass. If W is split by columns, the sum is dx, in the backward pass, and its communication
// overlaps the computation of dW. A layer that is split by rows does not add a bias itself, because the bias must be added
// once, after the sum over ranks. Residual adds this bias.
#include "layers/layers.hpp"

namespace chorale {
namespace {

using Cut = LinearOptions::Cut;

class Linear final : public Layer {
 public:
  Linear(std::string name, const LinearOptions& o) : Layer(std::move(name)), cut_(o.cut), block_(o.block) {
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

  Tensor forward(const Tensor& x, Context& context) override {
    if (context.tape) context.tape->keep(x);
    if (cut_ == Cut::rows) return start_block_product(x, weight_->value, false, block_, sum_, context)();
    const Tensor all = context.boundary->whole(x, context), y = context.tensor({all.dim(0), weight_->value.dim(1)});
    context.numerics.product(all, weight_->value, false, bias_ ? &bias_->value : nullptr, y, context.queue);
    return y;
  }

  Tensor backward(const Tensor& dy, Context& context) override {
    const Tensor x = context.tape->take();
    return cut_ == Cut::rows ? backward_rows(x, dy, context) : backward_columns(x, dy, context);
  }

  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override {
    visit(weight_);
    if (bias_) visit(bias_);
  }

  void each_site(const std::function<void(SumSite&)>& visit) override { visit(sum_); }

  Keeps keeps(std::int64_t rows, const Context& context) const override {
    const std::int64_t kept = cut_ == Cut::rows ? rows : context.boundary->rows(rows);
    return {.input = kept * weight_->local_shape()[0] * size_of(context.compute)};
  }

 private:
  // dW and db are computed while dx is summed over ranks. If the pipeline schedule splits backward passes, as ZB-H1 does,
  // weight_gradient() computes dW and db later, and no computation overlaps the sum.
  Tensor backward_columns(const Tensor& x, const Tensor& dy, Context& context) {
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

  // No bias is added here, because Residual adds the bias of a layer that is split by rows.
  Tensor backward_rows(const Tensor& x, const Tensor& dy, Context& context) {
    const Tensor all = context.boundary->whole(dy, context), dx = context.tensor({all.dim(0), weight_->value.dim(0)});
    context.numerics.product(all, weight_->value, true, nullptr, dx, context.queue);
    context.weight_gradient([this, x, all, &context] {
      context.numerics.add_outer(x, all, context.leaves(), weight_->gradient, weight_->site, context.queue);
      context.ready(*weight_);
    });
    return dx;
  }

  Cut cut_;
  std::int64_t block_;
  ParameterPointer weight_, bias_;
  SumSite sum_;  // the sum over blocks: y if W is split by rows, dx if W is split by columns
};

}  // namespace

LayerPointer linear_layer(std::string name, const LinearOptions& options) {
  return std::make_unique<Linear>(std::move(name), options);
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

}  // namespace chorale
