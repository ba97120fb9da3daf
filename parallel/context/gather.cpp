// Context parallelism by gathering keys and values (Llama 3). Every rank gathers all keys and computes attention for its own
// queries. A query processes the keys in the same order as in a run on one rank, so the results are bit-identical to that
// run.
//
//   forward    keys here ─ all-gather ─▶ keys of the sequence ─ attention ─▶ out
//   backward   the same all-gather again, then   dkeys of the sequence ─ reduce-scatter ─▶ dkeys here
//
// Let c ranks divide b samples of s tokens evenly, and let a key and a value have h_kv elements each. Then a rank sends
// 2·h_kv·b·(s/c)·(c−1) elements in the forward pass and twice as many in the backward pass. The gathered keys are workspace
// and are not kept for the backward pass.
#include "parallel/context/context.hpp"
#include "parallel/context/sequence_order.hpp"

namespace chorale {
namespace {

class Gather final : public AttentionScheme {
 public:
  Gather(Axis& axis, const TokenCut& cut) : axis_(axis), cut_(cut) {}

  Tensor backward(const Tensor& dout, const AttentionCall& call, Context& context) const override {
    const Tensor out = context.tape->take(), lse = context.tape->take(), qkv = context.tape->take();
    const Tensor dqkv = context.tensor(qkv.shape());
    const AttentionInput in = input(qkv, call, context);
    const Tensor sums = context.zeros(in.keys.tensor.shape(), context.numerics.partial_type(context.compute));
    differentiate(in, dout, out, lse, dqkv, in.keys.in(sums), call.keys, context);
    const Tensor here = context.typed({qkv.dim(0), sums.dim(1)}, sums.dtype(), Category::workspace);
    const std::int64_t samples = samples_of(qkv.dim(0), context);
    axis_.reduce_scatter(by_rank(sums, cut_, samples, context), here, rows_of_ranks(cut_, samples));
    put_keys(context.settled(here, call.keys), call.shape, dqkv, context.queue);
    return dqkv;
  }

  void collect(const Tensor& qkv, const AttentionShape& shape, const Tensor& keys, Context& context) const override {
    copy(gathered(qkv, shape, context).slice(), keys.slice());
  }

 private:
  AttentionInput input(const Tensor& qkv, const AttentionCall& call, Context& context) const override {
    const std::int64_t samples = samples_of(qkv.dim(0), context);
    return {.qkv = qkv,
            .keys = keys_alone(gathered(qkv, call.shape, context), call.shape, samples, cut_.sequence()),
            .shape = call.shape,
            .dropout = call.dropout,
            .pairs = static_cast<double>(samples) * cut_.pairs(axis_.rank())};
  }

  // The keys and values of complete sequences, in the order of their tokens.
  Tensor gathered(const Tensor& qkv, const AttentionShape& shape, Context& context) const {
    const Tensor here = context.typed({qkv.dim(0), shape.key_columns()}, context.compute, Category::workspace);
    take_keys(qkv, shape, here, context.queue);
    return chorale::gathered(here, axis_, cut_, context);
  }

  Axis& axis_;
  const TokenCut& cut_;
};

}  // namespace

std::unique_ptr<AttentionScheme> gather_context(const AxisParts& whole, const TokenCut& cut) {
  return std::make_unique<Gather>(whole.axis(), cut);
}

}  // namespace chorale
