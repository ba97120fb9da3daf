#include "layers/head.hpp"

#include "layers/layers.hpp"
#include "src/math/cross_entropy.hpp"

namespace chorale {
namespace {

// Marks the kernels that run in the scope of this object as kernels of the head, for plans.
class Marked {
 public:
  Marked(Queue& queue, OfHead kind) : queue_(queue) { queue_.head = kind; }
  ~Marked() { queue_.head = OfHead::no; }
  Marked(const Marked&) = delete;

 private:
  Queue& queue_;
};

}  // namespace

Head::Head(const ModelShape& shape, const Sharding& sharding, ParameterPointer table)
    : Layer("head"), table_(std::move(table)), tied_(table_), block_(shape.vocabulary_block()) {
  if (!table_) {
    table_ = std::make_shared<Parameter>(
        Parameter{.name = "head.weight", .shape = {shape.vocabulary, shape.width}, .deviation = 0.02});
    sharding.cut(*table_, 0, block_);
  }
  exponentials_ = {.name = "head sum of exponentials", .sum = SumOf::exponentials, .addends = shape.vocabulary};
  losses_ = {.name = "head loss", .sum = SumOf::losses};
  sum_ = {.name = "head input gradient", .sum = SumOf::input_gradients, .addends = (shape.vocabulary + block_ - 1) / block_};
}

Tensor Head::logits(const Tensor& x, Context& context) const {
  const Marked marked(context.queue, OfHead::logits);
  const Tensor y = context.tensor({x.dim(0), table_->value.dim(0)});
  context.numerics.product(x, table_->value, true, nullptr, y, context.queue);
  return y;
}

Tensor Head::forward(const Tensor& x, Context& context) {
  if (context.cache) return logits(x.narrow(x.dim(0) - 1, 1), context);
  const Tensor scores = logits(context.boundary->whole(x, context), context);
  context.look("logits", name_, scores);
  const Shape rows{scores.dim(0)};
  const auto column = [&](DType dtype) { return context.typed(rows, dtype, Category::workspace); };
  const Tensor maxima = column(context.statistics()), hits = column(context.statistics());
  const Tensor losses = column(context.statistics());
  const Tensor sums = column(context.numerics.gradient_type(context.compute));
  row_maxima(scores, maxima, context.queue);
  context.boundary->greatest(maxima);
  context.numerics.sum_exponentials(scores, maxima, sums, exponentials_, context.queue);
  const double unit = context.numerics.unit(exponentials_);
  target_logits(scores, context.targets, table_->shard.first, hits, context.queue);
  context.boundary->add(sums, hits);
  token_losses(maxima, sums, unit, hits, context.targets, losses, context.queue);
  losses_.addends = context.step_tokens;
  context.numerics.add_losses(losses, context.loss, losses_, context.queue);
  if (context.tape) {
    cross_entropy_gradient(scores, maxima, sums, unit, context.targets, table_->shard.first, context.loss_scale,
                           context.queue);
    context.tape->keep(x);
    context.tape->keep(scores);
  }
  return losses;
}

Tensor Head::backward(const Tensor&, Context& context) {
  const Marked marked(context.queue, OfHead::gradients);
  const Tensor dscores = context.tape->take(), x = context.tape->take();
  const auto dx = start_block_product(dscores, table_->value, false, block_, sum_, context);
  context.weight_gradient([this, dscores, x, &context] {
    const Marked here(context.queue, OfHead::gradients);  // some pipeline schedules compute this product later
    context.numerics.add_outer(dscores, context.boundary->whole(x, context), context.leaves(), table_->gradient,
                               table_->site, context.queue);
    if (!tied_) context.ready(*table_);  // a tied table's gradient is ready once the embedding has added its part
  });
  return dx();
}

void Head::each_parameter(const std::function<void(const ParameterPointer&)>& visit) const {
  if (!tied_) visit(table_);
}

void Head::each_site(const std::function<void(SumSite&)>& visit) {
  for (SumSite* site : {&exponentials_, &losses_, &sum_}) visit(*site);
}

Keeps Head::keeps(std::int64_t rows, const Context& context) const {
  const std::int64_t element = size_of(context.compute);
  return {.input = context.boundary->rows(rows) * table_->shape[1] * element,
          .inside = rows * table_->local_shape()[0] * element};
}

}  // namespace chorale
