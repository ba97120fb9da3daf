// Ring attention (Liu et al. 2023): keys and values circulate among the ranks, and every rank attends to the keys that it
// currently has. Each rank accumulates a partial result, so no rank ever has all keys.
//
//   step        0     1     2     3         keys of rank …, with 4 ranks
//   rank 0     k0    k3    k2    k1         forward: while a rank computes, its keys are sent to the next rank
//   rank 1     k1    k0    k3    k2         backward: the gradients of keys are sent one step behind the keys,
//   rank 2     k2    k1    k0    k3           and reach the keys' own rank after the last step
//   rank 3     k3    k2    k1    k0
//
// A rank skips each range of keys that the causal mask hides from all of the rank's queries. If each sample has its own
// partition (balanced_cut.hpp), samples are computed one at a time. A rank then also skips the keys of documents in which it
// has no queries. The rounding of partial results depends on the number of ranks, so exact numerics refuses this scheme. In
// 16-bit models, partial results are stored in f32.
//
// Let c ranks divide b samples of s tokens evenly, and let a key and a value have h_kv elements each. Then a rank sends
// 2·h_kv·b·(s/c)·(c−1) elements in the forward pass. In the backward pass, the rank sends the keys and values again, and
// also the gradients of keys and values.
#include "parallel/context/context.hpp"
#include "parallel/context/sequence_order.hpp"
#include "src/math/cast.hpp"

namespace chorale {
namespace {

class Ring final : public AttentionScheme {
 public:
  Ring(const AxisParts& rings, const TokenCut& cut) : ring_(rings), cut_(cut) {}

  Tensor forward(const Tensor& qkv, const AttentionCall& call, Context& context) const override {
    const Tensor sum = context.typed({qkv.dim(0), call.shape.heads() * call.shape.width}, context.statistics(),
                                     context.compute == context.statistics() ? Category::activations : Category::workspace);
    const Tensor lse = context.typed({qkv.dim(0), call.shape.heads()}, context.statistics());
    Passing keys{*this, own_keys(qkv, call.shape, context)};
    for (std::int64_t step = 0; step < ring_.size(); ++step) {
      if (step + 1 < ring_.size()) keys.pass_on(step, context);
      each_run(qkv, keys.here, call, step, context, [&](const AttentionInput& in, const auto& rows) {
        attend(in, rows(sum), rows(lse), context);
        ring_.axis().poll();
      });
      keys.arrive();
    }
    const Tensor out = context.as(context.compute, sum, Category::activations);
    if (context.tape)
      for (const Tensor& kept : {qkv, lse, out}) context.tape->keep(kept);
    return out;
  }

  Tensor backward(const Tensor& dout, const AttentionCall& call, Context& context) const override {
    const Tensor out = context.tape->take(), lse = context.tape->take(), qkv = context.tape->take();
    const DType type = context.statistics();
    const Tensor sum = context.as(type, out);
    const Tensor dqkv = context.zeros(qkv.shape(), type);
    Passing keys{*this, own_keys(qkv, call.shape, context)};
    // The key gradients of this rank's own tokens. The key gradients of all other tokens are sent to the ranks that have
    // these tokens.
    Tensor own;
    Passing gradients{*this, {}};
    for (std::int64_t step = 0; step < ring_.size(); ++step) {
      if (step + 1 < ring_.size()) keys.pass_on(step, context);
      const Tensor here = context.zeros(keys.here.shape(), type);
      each_run(qkv, keys.here, call, step, context, [&](AttentionInput& in, const auto& rows) {
        in.continues = true;
        differentiate(in, rows(dout), rows(sum), rows(lse), rows(dqkv), in.keys.in(here), call.keys, context);
        ring_.axis().poll();
      });
      keys.arrive();
      if (step == 0) {
        own = here;
        continue;
      }
      if (step > 1) {
        gradients.arrive();
        add(gradients.here.slice(), here.slice(), context.queue);
      }
      gradients.here = here;
      gradients.pass_on(step, context);
    }
    gradients.arrive();
    add(gradients.here.slice(), own.slice(), context.queue);
    const Tensor result = context.as(context.compute, dqkv, Category::activations);
    put_keys(context.as(context.compute, own, Category::activations), call.shape, result, context.queue);
    return result;
  }

 private:
  // Rows that circulate: in each step, every rank sends the rows that it holds to the next rank. At step i, rank r holds the
  // rows of rank r − i.
  struct Passing {
    const Ring& ring;
    Tensor here;
    Tensor next = {};
    Axis::Pending pending = {};

    void pass_on(std::int64_t step, Context& context) {
      const AxisParts& parts = ring.ring_;
      const auto tokens = [&](std::int64_t index, std::int64_t at) { return ring.cut_.tokens(ring.owner(index, at)); };
      const std::int64_t samples = here.dim(0) / tokens(parts.rank(), step);
      const RowsBetween rows = parts.between([&](std::int64_t from, std::int64_t to) {
        const bool follows = parts.index(to) == (parts.index(from) + 1) % parts.size();
        return follows ? samples * tokens(parts.index(from), step) : 0;
      });
      next = context.typed({samples * tokens(parts.rank(), step + 1), here.dim(1)}, here.dtype(), Category::workspace);
      pending = parts.axis().start_all_to_all(here, next, rows);
    }
    void arrive() {
      if (!next) return;
      pending.wait();
      here = std::exchange(next, {});
    }
  };

  std::int64_t owner(std::int64_t rank, std::int64_t step) const { return (rank - step + 2 * ring_.size()) % ring_.size(); }

  static Tensor own_keys(const Tensor& qkv, const AttentionShape& shape, Context& context) {
    const Tensor keys = context.typed({qkv.dim(0), shape.key_columns()}, context.compute, Category::workspace);
    take_keys(qkv, shape, keys, context.queue);
    return keys;
  }

  // Calls f for each range of this step's keys to which a query of this rank attends. Each call of f covers all samples with
  // the same partition among the ranks. rows(t) returns the rows of tensor t that belong to the queries of these samples.
  template <class F>
  void each_run(const Tensor& qkv, const Tensor& keys, const AttentionCall& call, std::int64_t step, const Context& context,
                F&& f) const {
    const std::int64_t rank = ring_.rank(), source = owner(rank, step), here = cut_.tokens(rank),
                       there = cut_.tokens(source);
    const std::int64_t samples = qkv.dim(0) / here, alike = context.cuts ? 1 : samples;
    for (std::int64_t sample = 0; sample < samples; sample += alike) {
      const TokenCut& cut = cut_of(sample, cut_, context);
      const auto rows = [&](const Tensor& t) { return t.narrow(sample * here, alike * here); };
      for (const TokenRun& run : cut.runs(source)) {
        if (!cut.sees(rank, run)) continue;
        AttentionInput in{.qkv = rows(qkv),
                          .keys = keys_alone(keys, call.shape, samples, run.count),
                          .shape = call.shape,
                          .dropout = call.dropout,
                          .continues = step > 0 || run.row > 0,
                          .pairs = static_cast<double>(alike) * cut.pairs(rank, run)};
        in.keys.first_token = run.first;
        in.keys.first_row = sample * there + run.row;
        in.dropout.tokens.first_row += sample * here;
        f(in, rows);
      }
    }
  }

  AxisParts ring_;
  TokenCut cut_;  // how the ranks of a ring divide the samples that share one partition
};

}  // namespace

std::unique_ptr<AttentionScheme> ring_context(const AxisParts& rings, const TokenCut& cut) {
  return std::make_unique<Ring>(rings, cut);
}

}  // namespace chorale
