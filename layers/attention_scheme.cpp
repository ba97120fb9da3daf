#include "layers/attention_scheme.hpp"

#include "layers/attention_work.hpp"
#include "src/math/heads.hpp"

namespace chorale {
namespace {

void copy_keys(const Tensor& qkv, const AttentionShape& shape, const Tensor& keys, bool back, const Queue& queue) {
  copy_heads(qkv, {shape.groups, shape.queries + 2, shape.queries, 2, shape.width}, keys.view({-1, shape.width}), back,
             queue);
}

}  // namespace

void take_keys(const Tensor& qkv, const AttentionShape& shape, const Tensor& keys, const Queue& queue) {
  copy_keys(qkv, shape, keys, false, queue);
}

void put_keys(const Tensor& keys, const AttentionShape& shape, const Tensor& qkv, const Queue& queue) {
  copy_keys(qkv, shape, keys, true, queue);
}

const AttentionScheme& AttentionScheme::alone() {
  static const AttentionScheme scheme;
  return scheme;
}

void AttentionScheme::attend(const AttentionInput& in, const Tensor& out, const Tensor& lse, Context& context) {
  const AttentionTimer timer(context.attention_work);
  attention_forward(in, out, lse, context.queue);
}

void AttentionScheme::differentiate(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse,
                                    const Tensor& dqkv, const KeyRows& dkeys, SumSite& keys, Context& context) {
  const AttentionTimer timer(context.attention_work);
  context.numerics.attention_backward(in, dout, out, lse, dqkv, dkeys, context.leaves().length, keys, context.queue);
}

AttentionInput AttentionScheme::input(const Tensor& qkv, const AttentionCall& call, Context&) const {
  return whole_sequences(qkv, call.shape, call.dropout);
}

Tensor AttentionScheme::forward(const Tensor& qkv, const AttentionCall& call, Context& context) const {
  const Tensor out = context.tensor({qkv.dim(0), call.shape.heads() * call.shape.width});
  const Tensor lse = context.typed({qkv.dim(0), call.shape.heads()}, context.statistics());
  attend(input(qkv, call, context), out, lse, context);
  if (context.tape)
    for (const Tensor& kept : {qkv, lse, out}) context.tape->keep(kept);
  return out;
}

// Fast numerics writes the gradients of keys and values next to the gradients of the queries. Exact numerics first sums the
// gradients of keys and values as integers, in a separate tensor.
Tensor AttentionScheme::backward(const Tensor& dout, const AttentionCall& call, Context& context) const {
  const Tensor out = context.tape->take(), lse = context.tape->take(), qkv = context.tape->take();
  const Tensor dqkv = context.tensor(qkv.shape());
  const AttentionInput in = input(qkv, call, context);
  const DType partial = context.numerics.partial_type(context.compute);
  if (partial == context.compute) {
    differentiate(in, dout, out, lse, dqkv, in.keys.in(dqkv), call.keys, context);
    return dqkv;
  }
  const AttentionShape& shape = call.shape;
  const Tensor sums = context.zeros({qkv.dim(0), shape.key_columns()}, partial);
  const KeyRows apart = keys_alone(sums, shape, qkv.dim(0) / context.tokens.tokens, context.tokens.tokens);
  differentiate(in, dout, out, lse, dqkv, apart, call.keys, context);
  put_keys(context.settled(sums, call.keys), shape, dqkv, context.queue);
  return dqkv;
}

void AttentionScheme::collect(const Tensor& qkv, const AttentionShape& shape, const Tensor& keys, Context& context) const {
  take_keys(qkv, shape, keys, context.queue);
}

Keeps AttentionScheme::keeps(std::int64_t rows, const AttentionShape& shape, const Context& context) const {
  return {.input = rows * shape.columns() * size_of(context.compute),
          .inside = rows * shape.heads() * size_of(context.statistics()),
          .output = rows * shape.heads() * shape.width * size_of(context.compute)};
}

}  // namespace chorale
