// Maps each token id to a vector. The vector is the id's row of the token table, plus the row of the token's position if
// positions are learned. Dropout is applied last. The layer keeps no activations for the backward pass, because the ids are
// input data. If the table's rows are split between ranks, a rank returns zeros for an id whose row is on a different rank.
#include "layers/layers.hpp"

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

class Embedding final : public Layer {
 public:
  Embedding(const ModelShape& shape, std::uint32_t site, const Sharding& sharding)
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

  Tensor forward(const Tensor& ids, Context& context) override {
    const Tensor rows = context.tensor({ids.dim(0), table_->value.dim(1)});
    gather_rows(ids, table_->value, table_->shard.first, rows, context.queue);
    const Tensor y = context.boundary->pick(rows, context);
    if (positions_) add_positions(positions_->value, context.stream, y, context.queue);
    const Dropout drop = context.dropout(dropout_, site_, context.stream);
    if (drop.probability > 0) chorale::dropout(y, drop, y, context.queue);
    if (context.tape) context.tape->keep(ids);
    return y;
  }

  // Returns an empty tensor: ids have no gradient.
  Tensor backward(const Tensor& dy, Context& context) override {
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

  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override {
    visit(table_);
    if (positions_) visit(positions_);
  }

  Keeps keeps(std::int64_t, const Context&) const override { return {}; }

 private:
  ParameterPointer table_, positions_;
  double dropout_;
  std::uint32_t site_;
};

}  // namespace

LayerPointer embedding_layer(const ModelShape& shape, std::uint32_t site, const Sharding& sharding) {
  return std::make_unique<Embedding>(shape, site, sharding);
}

}  // namespace chorale
