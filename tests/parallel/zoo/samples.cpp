// Mistakes in the order of samples, and in dropout masks.
#include "layers/attention_scheme.hpp"
#include "parallel/step/tensor.hpp"
#include "tests/parallel/zoo/mistake.hpp"

namespace chorale::zoo {
namespace {

// Each rank draws different dropout masks.
template <class Of>
struct OwnSeed : Of {
  template <class... Args>
  explicit OwnSeed(int rank, Args&... args) : Of(args...), rank(rank) {}
  Tensor pick(const Tensor& rows, Context& context) const override {
    context.seed += static_cast<std::uint64_t>(rank);
    return Of::pick(rows, context);
  }
  int rank;
};

// Each replica counts its samples from 0, so all replicas draw the same dropout masks.
struct LocalPlaces : ShardBoundary {
  Tensor pick(const Tensor& rows, Context& context) const override {
    context.tokens.first_sample = context.stream.first_sample = 0;
    return rows;
  }
};

// Each shard of the residual stream counts its rows from 0, so all shards draw the same dropout masks.
struct LocalRows : SequenceParallel {
  using SequenceParallel::SequenceParallel;
  Tensor pick(const Tensor& rows, Context& context) const override {
    context.stream.first_row = 0;
    return SequenceParallel::pick(rows, context);
  }
};

// Each tensor rank counts its heads from 0, so all tensor ranks draw the same dropout masks for attention weights.
struct LocalHeads : AttentionScheme {
  AttentionInput input(const Tensor& qkv, const AttentionCall& call, Context& context) const override {
    AttentionInput in = AttentionScheme::input(qkv, call, context);
    in.shape.first_head = 0;
    return in;
  }
};

struct RedrawsMasks final : Recomputation {
  using Recomputation::Recomputation;
  void again(Context& context) const override {
    ++context.seed;
    context.choices = nullptr;
  }
};

void resume_later(Run& run, std::int64_t samples) {
  run.steps(1);
  run.training.resume_at(run.training.steps(), run.training.samples() + samples);
}

}  // namespace

std::vector<Mistake> mistakes_in_samples() {
  return {
      {.about = "all replicas read the same samples",
       .layouts = {"dp2", "dp3.z1", "dp2.pp2"},
       .proof = "step 1: loss",
       .make =
           [](Run& run) {
             run.read = [read = run.read, share = run.training.options().batch.global / run.training.mesh().data().size()](
                            std::int64_t first, auto... rest) { read(first / 12 * 12 + first % share, rest...); };
           }},
      {.about = "a resumed run reads its data from the start",
       .layouts = {"dp1", "dp2.pp2"},
       .proof = "step 2: loss",
       .make = [](Run& run) { resume_later(run, -run.training.options().batch.global); }},
      {.about = "a resumed run skips a sample",
       .layouts = {"dp1", "dp2.tp2"},
       .proof = "step 2: loss",
       .make = [](Run& run) { resume_later(run, 1); }},
      {.about = "each replica draws masks by a seed of its own",
       .layouts = {"dp2", "dp3.z3"},
       .proof = "step 1: loss",
       .make =
           [](Run& run) {
             run.training.replace_boundary(
                 [&](auto) { return std::make_unique<OwnSeed<ShardBoundary>>(run.training.mesh().data().rank()); });
           }},
      {.about = "all replicas draw the same masks",
       .layouts = {"dp2", "dp3.z1"},
       .proof = "step 1: loss",
       .make = [](Run& run) { run.training.replace_boundary([&](auto) { return std::make_unique<LocalPlaces>(); }); }},
      {.about = "tensor ranks draw different masks for activations that all of them have",
       .layouts = {"dp1.tp2", "dp1.tp3"},
       .proof = "step 1: loss",
       .make =
           [](Run& run) {
             Axis& axis = run.training.mesh().tensor();
             run.training.replace_boundary(
                 [&](auto) { return std::make_unique<OwnSeed<TensorParallel>>(axis.rank(), axis); });
           }},
      {.about = "tensor ranks draw the same masks for different heads",
       .layouts = {"dp1.tp2", "dp2.tp3", "dp1.tp2.sp"},
       .proof = "step 1: loss",
       .make = [](Run& run) { run.training.replace_attention([&](auto) { return std::make_unique<LocalHeads>(); }); }},
      {.about = "under sequence parallelism, tensor ranks draw the same masks for different tokens",
       .layouts = {"dp1.tp2.sp", "dp2.tp3.sp"},
       .proof = "step 1: loss",
       .make =
           [](Run& run) {
             run.training.replace_boundary([&](auto) { return std::make_unique<LocalRows>(run.training.mesh().tensor()); });
           }},
      {.about = "recomputation draws other masks",
       .layouts = {"dp1", "dp1.tp2", "dp2.z3"},
       .proof = "step 1: norm",
       .setting = [](TrainingOptions& o) { o.recompute = Recompute::full; },
       .change =
           [](TrainingOptions& o, const Mesh& mesh) {
             o.recompute = Recompute::none;
             wrap_blocks<RedrawsMasks>(o, mesh);
           }},
  };
}

}  // namespace chorale::zoo
