// Mistakes in the training of experts.
#include <algorithm>
#include <cmath>

#include "tests/parallel/zoo/mistake.hpp"

namespace chorale::zoo {
namespace {

// Experts that are divided among ranks get gradients with a wrong factor. There are two possible causes: the code uses the
// number of tokens on a rank instead of the number of tokens in a replica, or it assumes that all ranks of a replica have
// copies of all experts.
template <bool larger>
struct ScaledExperts : Before {
  using Before::Before;
  void finish() override {
    inner->finish();
    const std::int64_t ranks = run.training.mesh().layout().expert_ranks();
    for (const Owned& owned : run.training.buckets().owned())
      if (std::ranges::count(owned.parameter->cut_by, "ep") > 0)
        for (std::int64_t& g : owned.gradient.values<std::int64_t>()) g = larger ? g * ranks : g / ranks;
  }
};

// With this mistake, the forward passes of an evaluation also change the biases of experts.
struct MovesAlways final : WrappingLayer {
  using WrappingLayer::WrappingLayer;
  Tensor forward(const Tensor& x, Context& context) override {
    if (!context.training) context.balance->bias()->value.values<float>()[0] += 1e-6f;
    return inner_->forward(x, context);
  }
  Tensor backward(const Tensor& dy, Context& context) override { return inner_->backward(dy, context); }
};

void with_experts(TrainingOptions& o) {
  o.shape.experts = test::small_moe().experts;
  o.shape.experts.score = ScoreFunction::sigmoid;
  o.shape.experts.bias = true;
}

void with_experts_recomputed(TrainingOptions& o) {
  with_experts(o);
  o.recompute = Recompute::full;
}

}  // namespace

std::vector<Mistake> mistakes_in_experts() {
  return {
      {.about = "gradients of experts are multiplied by ep",
       .layouts = {"dp2.ep2", "dp4.ep2.z1", "dp2.pp2.ep2", "dp4.ep2.z3"},
       .proof = "step 1: norm",
       .setting = with_experts,
       .make = reduce_by<ScaledExperts<true>>},
      {.about = "gradients of experts are divided by ep",
       .layouts = {"dp2.ep2", "dp4.ep2.z1"},
       .proof = "step 1: norm",
       .setting = with_experts,
       .make = reduce_by<ScaledExperts<false>>},
      {.about = "each tensor rank adds the whole balance loss",
       .layouts = {"dp1.tp2", "dp2.tp2.ep2.sp"},
       .proof = "step 1: norm",
       .setting = with_experts,
       .change = [](TrainingOptions& o,
                    const Mesh& mesh) { o.shape.experts.balance *= static_cast<double>(mesh.tensor().size()); }},
      {.about = "the balance loss is not divided by the number of micro-batches",
       .layouts = {"dp1", "dp2.pp2", "dp2.ep2"},
       .proof = "step 1: norm",
       .setting = with_experts,
       .change =
           [](TrainingOptions& o, const Mesh& mesh) {
             o.shape.experts.balance *=
                 static_cast<double>(o.batch.global) / static_cast<double>(mesh.data().size() * o.batch.micro);
           }},
      {.about = "recomputation adds the balance loss again",
       .layouts = {"dp1", "dp2.ep2"},
       .proof = "step 1: norm",
       .setting = with_experts_recomputed,
       .change = [](TrainingOptions& o, const Mesh&) { o.shape.experts.balance *= 2; }},
      {.about = "recomputation counts the choices of experts again",
       .layouts = {"dp1", "dp1.tp2", "dp2.ep2.z2"},
       .proof = "step 1: experts were chosen differently",
       .setting = with_experts_recomputed,
       .change =
           [](TrainingOptions& o, const Mesh& mesh) {
             o.recompute = Recompute::none;
             wrap_blocks<Recomputation>(o, mesh);
           }},
      {.about = "evaluations move the biases of experts",
       .layouts = {"dp1", "dp2.tp2", "dp2.ep2"},
       .proof = "step 2: expert_bias differs",
       .setting = with_experts,
       .change = wrap_blocks<MovesAlways>},
  };
}

}  // namespace chorale::zoo
