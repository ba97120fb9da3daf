// The part of attention that has no parameters. The layer rotates queries and keys if positions are rotary. In each head, a
// token's output is then a weighted mean of the value vectors of that token and all earlier tokens. For the backward pass,
// the layer keeps its input (queries, keys, values), its output and one value per head and token. The layer never keeps the
// scores. If ranks split the tokens of a sequence, an AttentionScheme does the communication that attention needs.
#include "layers/layers.hpp"

#include "layers/attention_scheme.hpp"

namespace chorale {
namespace {

const AttentionScheme& scheme_of(const Context& context) {
  return context.attention ? *context.attention : AttentionScheme::alone();
}

class Attention final : public Layer {
 public:
  Attention(std::string name, const AttentionOptions& options) : Layer(std::move(name)), options_(options) {
    keys_ = {.name = name_ + " gradients of keys and values",
             .sum = SumOf::input_gradients,
             .addends = options_.leaves * options_.shape.queries};
  }

  Tensor forward(const Tensor& qkv, Context& context) override {
    if (options_.rotary)
      // Rotates in place, because the layer that computed qkv does not keep qkv.
      rotate(qkv, *options_.rotary, context.tokens, false, context.queue);
    if (context.cache) return generate(qkv, context);
    const Dropout drop = dropout(context);
    return scheme_of(context).forward(qkv, {options_.shape, drop, keys_}, context);
  }

  Tensor backward(const Tensor& dy, Context& context) override {
    const Dropout drop = dropout(context);
    const Tensor dqkv = scheme_of(context).backward(dy, {options_.shape, drop, keys_}, context);
    if (options_.rotary) rotate(dqkv, *options_.rotary, context.tokens, true, context.queue);
    return dqkv;
  }

  void each_site(const std::function<void(SumSite&)>& visit) override { visit(keys_); }

  Keeps keeps(std::int64_t rows, const Context& context) const override {
    return scheme_of(context).keeps(rows, options_.shape, context);
  }

 private:
  Dropout dropout(const Context& context) const { return context.dropout(options_.dropout, options_.site, context.tokens); }

  Tensor generate(const Tensor& qkv, Context& context) const {
    const AttentionShape& shape = options_.shape;
    const std::int64_t past = context.cache->past, end = past + context.cache->next;
    Tensor& cache = context.cache->layers[options_.cache_slot];
    if (!cache) cache = context.tensor({context.cache->capacity, shape.key_columns()});
    scheme_of(context).collect(qkv, shape, cache.narrow(past, end - past), context);
    const Tensor out = context.tensor({qkv.dim(0), shape.heads() * shape.width});
    const AttentionInput in{
        .qkv = qkv, .keys = keys_alone(cache, shape, 1, end), .shape = shape, .dropout = {.tokens = context.tokens}};
    attention_forward(in, out, {}, context.queue);
    return out;
  }

  AttentionOptions options_;
  SumSite keys_;  // the gradients of keys and values, which are sums over queries
};

}  // namespace

LayerPointer attention_layer(std::string name, const AttentionOptions& options) {
  return std::make_unique<Attention>(std::move(name), options);
}

}  // namespace chorale
