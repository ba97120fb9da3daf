#include "layers/attention.hpp"

namespace chorale {

Dropout Attention::dropout(const Context& context) const {
  return context.dropout(options_.dropout, options_.site, context.tokens);
}

Tensor Attention::forward(const Tensor& qkv, Context& context) {
  const AttentionShape& shape = options_.shape;
  if (options_.rotary)
    // In place: the layer that made qkv does not keep it.
    rotate(qkv, *options_.rotary, context.tokens, false, context.queue);
  const Tensor out = context.tensor({qkv.dim(0), shape.heads() * shape.width});
  if (context.cache) {
    KeyValueCache::Layer& mine = context.cache->layers[options_.cache_slot];
    for (Tensor* half : {&mine.keys, &mine.values})
      if (!*half) *half = context.tensor({1, context.cache->capacity, shape.groups, shape.width});
    attention_cached(qkv, shape, mine.keys, mine.values, context.cache->past, out, context.queue);
    return out;
  }
  const Tensor lse = context.typed({qkv.dim(0), shape.heads()}, context.statistics());
  attention_forward(qkv, shape, dropout(context), out, lse, context.queue);
  if (context.tape)
    for (const Tensor& kept : {qkv, lse, out}) context.tape->keep(kept);
  return out;
}

Tensor Attention::backward(const Tensor& dy, Context& context) {
  const Tensor out = context.tape->take(), lse = context.tape->take(), qkv = context.tape->take();
  const Tensor dqkv = context.tensor(qkv.shape());
  attention_backward(dy, qkv, out, lse, options_.shape, dropout(context), dqkv, context.queue);
  if (options_.rotary) rotate(dqkv, *options_.rotary, context.tokens, true, context.queue);
  return dqkv;
}

Keeps Attention::keeps(std::int64_t rows, const Context& context) const {
  const AttentionShape& shape = options_.shape;
  return {.input = rows * shape.columns() * size_of(context.compute),
          .inside = rows * shape.heads() * size_of(context.statistics()),
          .output = rows * shape.heads() * shape.width * size_of(context.compute)};
}

}  // namespace chorale
