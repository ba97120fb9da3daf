#include "layers/attention.hpp"

#include "layers/attention_scheme.hpp"

namespace chorale {
namespace {

const AttentionScheme& scheme_of(const Context& context) {
  return context.attention ? *context.attention : AttentionScheme::alone();
}

}  // namespace

Attention::Attention(std::string name, const Options& options) : Layer(std::move(name)), options_(options) {
  keys_ = {.name = name_ + " gradients of keys and values",
           .sum = SumOf::input_gradients,
           .addends = options_.leaves * options_.shape.queries};
}

Dropout Attention::dropout(const Context& context) const {
  return context.dropout(options_.dropout, options_.site, context.tokens);
}

Tensor Attention::forward(const Tensor& qkv, Context& context) {
  if (options_.rotary)
    // Rotates in place, because the layer that computed qkv does not keep qkv.
    rotate(qkv, *options_.rotary, context.tokens, false, context.queue);
  if (context.cache) return generate(qkv, context);
  const Dropout drop = dropout(context);
  return scheme_of(context).forward(qkv, {options_.shape, drop, keys_}, context);
}

Tensor Attention::generate(const Tensor& qkv, Context& context) const {
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

Tensor Attention::backward(const Tensor& dy, Context& context) {
  const Dropout drop = dropout(context);
  const Tensor dqkv = scheme_of(context).backward(dy, {options_.shape, drop, keys_}, context);
  if (options_.rotary) rotate(dqkv, *options_.rotary, context.tokens, true, context.queue);
  return dqkv;
}

Keeps Attention::keeps(std::int64_t rows, const Context& context) const {
  return scheme_of(context).keeps(rows, options_.shape, context);
}

}  // namespace chorale
