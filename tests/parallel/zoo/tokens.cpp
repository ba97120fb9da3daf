// Mistakes in context parallelism, in which ranks divide the tokens of sequences.
#include "parallel/context/sequence_order.hpp"
#include "tests/parallel/zoo/mistake.hpp"

namespace chorale::zoo {
namespace {

// Each context rank treats its tokens as the first tokens of the sequence.
struct FromTheStart : ShardBoundary {
  Tensor pick(const Tensor& rows, Context& context) const override {
    for (Tokens* tokens : {&context.tokens, &context.stream}) {
      tokens->places = nullptr;
      tokens->first_token = 0;
    }
    context.places = {};
    return rows;
  }
};

// Wraps the attention scheme of a run. A mistake changes the positions of queries in their sample, or in their document.
struct Around : AttentionScheme {
  Around(Run& to, std::unique_ptr<AttentionScheme> around) : run(to), inner(std::move(around)) {}
  virtual Tokens moved(Tokens tokens, std::int64_t /*rows*/) const { return tokens; }
  Tensor forward(const Tensor& qkv, const AttentionCall& call, Context& context) const override {
    return inner->forward(qkv, {call.shape, moved(call.dropout, qkv.dim(0)), call.keys}, context);
  }
  Tensor backward(const Tensor& dout, const AttentionCall& call, Context& context) const override {
    return inner->backward(dout, {call.shape, moved(call.dropout, dout.dim(0)), call.keys}, context);
  }
  Keeps keeps(std::int64_t rows, const AttentionShape& shape, const Context& context) const override {
    return inner->keeps(rows, shape, context);
  }
  QueryTokens query_tokens() const override { return inner->query_tokens(); }
  Dropout moved(Dropout dropout, std::int64_t rows) const {
    dropout.tokens = moved(dropout.tokens, rows);
    return dropout;
  }
  Axis& axis() const { return run.training.mesh().context(); }

  Run& run;
  std::unique_ptr<AttentionScheme> inner;
};

template <class Mistaken>
void attend_by(Run& run) {
  run.training.replace_attention([&](auto inner) { return std::make_unique<Mistaken>(run, std::move(inner)); });
}

// The first query of each shard cannot see the key of the same token.
struct EarlyMask : Around {
  using Around::Around;
  Tokens moved(Tokens tokens, std::int64_t rows) const override {
    places.assign(tokens.places, tokens.places + rows);
    for (const TokenRun& shard : run.training.cut().runs(axis().rank()))
      for (std::int64_t row = shard.row; shard.first > 0 && row < rows; row += tokens.tokens)
        --places[static_cast<std::size_t>(row)];
    tokens.places = places.data();
    return tokens;
  }
  mutable std::vector<std::int32_t> places;
};

// The last rank ignores document boundaries.
struct OneDocument : Around {
  using Around::Around;
  Tokens moved(Tokens tokens, std::int64_t) const override {
    if (axis().rank() == axis().size() - 1) tokens.positions = nullptr;
    return tokens;
  }
};

// Key gradients from other ranks are not added to this rank's key gradients.
struct LostHop : Around {
  using Around::Around;
  Tensor backward(const Tensor& dout, const AttentionCall& call, Context& context) const override {
    const Tensor out = context.tape->take(), lse = context.tape->take(), qkv = context.tape->take();
    const TokenCut& cut = run.training.cut();
    const std::int64_t samples = samples_of(qkv.dim(0), context);
    const Tensor dqkv = context.tensor(qkv.shape());
    Tensor keys = context.typed({qkv.dim(0), call.shape.key_columns()}, context.compute, Category::workspace);
    take_keys(qkv, call.shape, keys, context.queue);
    keys = gathered(keys, axis(), cut, context);
    const AttentionInput in{.qkv = qkv,
                            .keys = keys_alone(keys, call.shape, samples, cut.sequence()),
                            .shape = call.shape,
                            .dropout = call.dropout};
    const Tensor sums =
        context.typed(in.keys.tensor.shape(), context.numerics.partial_type(context.compute), Category::workspace);
    clear(sums);
    differentiate(in, dout, out, lse, dqkv, in.keys.in(sums), call.keys, context);
    const std::vector<std::int64_t> rows = rows_of_ranks(cut, samples);
    const Tensor all = by_rank(sums, cut, samples, context);
    const Tensor here = context.typed({qkv.dim(0), sums.dim(1)}, sums.dtype(), Category::workspace);
    std::int64_t first = 0;
    for (int rank = 0; rank < axis().rank(); ++rank) first += rows[static_cast<std::size_t>(rank)];
    const auto mine = all.narrow(first, here.dim(0)).values<std::int64_t>();
    const std::vector<std::int64_t> kept(mine.begin(), mine.end());
    axis().reduce_scatter(all, here, rows);
    std::ranges::copy(kept, here.values<std::int64_t>().begin());
    put_keys(context.settled(here, call.keys), call.shape, dqkv, context.queue);
    return dqkv;
  }
};

// Targets are shifted within each shard, so the last token of a shard has no target.
void lose_targets(Run& run) {
  run.read = [&run, read = run.read](std::int64_t first, std::int64_t samples, const SampleRows& rows) {
    read(first, samples, rows);
    const TokenCut& cut = run.training.cut();
    for (const TokenRun& shard : cut.runs(run.training.mesh().context().rank()))
      for (std::int64_t sample = 0; sample < samples; ++sample)
        rows.targets[static_cast<std::size_t>(sample * cut.sequence() + shard.first + shard.count - 1)] = -1;
  };
}

}  // namespace

std::vector<Mistake> mistakes_in_tokens() {
  return {
      {.about = "each context rank attends to its own keys only",
       .layouts = {"dp1.cp2", "dp2.cp2.z1", "dp1.pp2.cp2"},
       .proof = "step 1: loss",
       .make = [](Run& run) { run.training.replace_attention([&](auto) { return std::make_unique<AttentionScheme>(); }); }},
      {.about = "each context rank counts positions from 0",
       .layouts = {"dp1.cp2", "dp1.cp3", "dp2.cp2.z3"},
       .proof = "step 1: loss",
       .make = [](Run& run) { run.training.replace_boundary([&](auto) { return std::make_unique<FromTheStart>(); }); }},
      {.about = "the causal mask is off by one at the border of a shard",
       .layouts = {"dp1.cp2", "dp1.cp3", "dp2.cp2.z1"},
       .proof = "step 1: loss",
       .setting = [](TrainingOptions& o) { o.shape.dropout = 0; },
       .make = attend_by<EarlyMask>},
      {.about = "the gradients of keys and values miss the last hop to their rank",
       .layouts = {"dp1.cp2", "dp1.cp3", "dp2.cp2.z1"},
       .proof = "step 1: norm",
       .make = attend_by<LostHop>},
      {.about = "on one shard, packed documents attend over their borders",
       .layouts = {"dp1.cp2", "dp1.cp3", "dp2.cp2.z1"},
       .proof = "step 1: loss",
       .setting = [](TrainingOptions& o) { o.batch.packed = true; },
       .make = attend_by<OneDocument>},
      {.about = "targets are shifted within a shard, so the last token of a shard has none",
       .layouts = {"dp1.cp2", "dp1.cp3", "dp2.cp2.z1"},
       .proof = "step 1: loss",
       .make = lose_targets},
  };
}

}  // namespace chorale::zoo
