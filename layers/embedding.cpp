#include "layers/embedding.hpp"

#include "src/math/embedding.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {
namespace {

// Returns the positions of `rows` rows. If the context has a position table, returns a view of the table. The table is not
// read, because it can be in device memory.
Tensor positions_of(const Tokens& stream, std::int64_t rows, Context& context) {
  for (const Tensor& table : {context.positions, context.places})
    if (table) return table.narrow(stream.first_row, rows);
  const Tensor positions = context.typed({rows}, DType::i32, Category::workspace);
  if (!positions.phantom())
    with_values<std::int32_t>(positions, Use::write, [&](std::span<std::int32_t> all) {
      for (std::int64_t row = 0; auto& position : all) position = static_cast<std::int32_t>(stream.position(row++));
    });
  return positions;
}

}  // namespace

Embedding::Embedding(const ModelShape& shape, std::uint32_t site, const Sharding& sharding)
    : Layer("embedding"), dropout_(shape.dropout), site_(site) {
  const auto table = [&](const char* name, std::int64_t rows, double deviation) {
    return std::make_shared<Parameter>(Parameter{.name = name,
                                                 .shape = {rows, shape.width},
                                                 .deviation = deviation,
                                                 .sum = SumOf::token_gradients,
                                                 .multiplies = false});
  };
  table_ = table("embedding.weight", shape.vocabulary, 0.02);
  table_->tied = shape.tied;
  sharding.cut(*table_, 0, shape.vocabulary_block());
  if (shape.llama()) return;
  positions_ = table("position.weight", shape.sequence, 0.02);
  positions_->of_stream = true;
}

Tensor Embedding::forward(const Tensor& ids, Context& context) {
  const Tensor rows = context.tensor({ids.dim(0), table_->value.dim(1)});
  gather_rows(ids, table_->value, table_->shard.first, rows, context.queue);
  const Tensor y = context.boundary->pick(rows, context);
  if (positions_) add_positions(positions_->value, context.stream, y, context.queue);
  const Dropout drop = context.dropout(dropout_, site_, context.stream);
  if (drop.probability > 0) chorale::dropout(y, drop, y, context.queue);
  if (context.tape) context.tape->keep(ids);
  return y;
}

Tensor Embedding::backward(const Tensor& dy, Context& context) {
  const Tensor ids = context.tape->take();
  Tensor gradient = dy;
  const Dropout drop = context.dropout(dropout_, site_, context.stream);
  if (drop.probability > 0) {
    gradient = context.tensor(dy.shape());
    chorale::dropout(dy, drop, gradient, context.queue);
  }
  context.weight_gradient([this, ids, gradient, &context] {
    context.numerics.add_rows(ids, table_->shard.first, context.boundary->whole(gradient, context), table_->gradient,
                              table_->site, context.queue);
    context.ready(*table_);
    if (!positions_) return;
    const Tensor places = positions_of(context.stream, gradient.dim(0), context);
    context.numerics.add_rows(places, 0, gradient, positions_->gradient, positions_->site, context.queue);
    context.ready(*positions_);
  });
  return {};
}

void Embedding::each_parameter(const std::function<void(const ParameterPointer&)>& visit) const {
  visit(table_);
  if (positions_) visit(positions_);
}

}  // namespace chorale
