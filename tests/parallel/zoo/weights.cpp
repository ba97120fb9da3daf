// Mistakes in the update of weights. The mistakes concern shards, optimizer states, learning rates and resumed runs.
#include <algorithm>

#include "tests/parallel/zoo/mistake.hpp"

namespace chorale::zoo {
namespace {

// Rank 1 finds an overflow and skips the first step, but the other ranks do not.
struct SkipsAlone : Before {
  using Before::Before;
  void finish() override {
    inner->finish();
    if (run.training.steps() > 0 || run.training.mesh().world().rank() != 1) return;
    for (const Owned& owned : run.training.buckets().owned()) {
      const auto values = owned.value.values<float>();
      before_.emplace_back(values.begin(), values.end());
    }
  }
  void publish() override {
    for (std::size_t i = 0; i < before_.size(); ++i)
      std::copy(before_[i].begin(), before_[i].end(), run.training.buckets().owned()[i].value.values<float>().begin());
    before_.clear();
    inner->publish();
  }

 private:
  std::vector<std::vector<float>> before_;
};

// After an update, an all-gather sends the updated shards to all ranks (Reducer::publish). With this mistake, there is no
// all-gather, so each rank keeps the previous values of all other shards.
struct Unpublished : Before {
  using Before::Before;
  void publish() override {}
};

void each_moment(Run& run, float (*changed)(float)) {
  run.training.optimizer().each_state([&](const std::string& name, const Owned&, const Tensor& state) {
    if (!name.starts_with("moment")) return;
    for (float& x : state.values<float>()) x = changed(x);
  });
}

struct MomentsInBf16 : Before {
  using Before::Before;
  void publish() override {
    each_moment(run, [](float x) { return float(bf16(x)); });
    inner->publish();
  }
};

// A base class for mistakes in which the first block computes with the values of the previous step.
struct OldValues : WrappingLayer {
  using WrappingLayer::WrappingLayer;
  Tensor forward(const Tensor& x, Context& context) override { return inner_->forward(x, context); }
  Tensor backward(const Tensor& dy, Context& context) override { return inner_->backward(dy, context); }

 protected:
  // In the first call of a step, stores the gathered values and returns true.
  bool learn(const Context& context) {
    if (name() != "block.0" || (!newest_.empty() && context.step == step_)) return false;
    old_ = std::exchange(newest_, {});
    step_ = context.step;
    each_parameter([&](const ParameterPointer& p) {
      const auto values = p->value.values<float>();
      newest_[p.get()].assign(values.begin(), values.end());
    });
    return true;
  }
  void take_old() {
    for (const auto& [p, values] : old_) std::ranges::copy(values, p->value.values<float>().begin());
  }

 private:
  std::map<const Parameter*, std::vector<float>> newest_, old_;
  std::uint32_t step_ = 0;
};

// Values are gathered before the update, so the first forward pass of a step uses old values.
struct GatheredEarly final : OldValues {
  using OldValues::OldValues;
  Tensor forward(const Tensor& x, Context& context) override {
    if (learn(context)) take_old();
    return inner_->forward(x, context);
  }
};

// The backward pass gathers secondary shards that still have the values of the previous step.
struct OldSecondaryShards final : OldValues {
  using OldValues::OldValues;
  Tensor backward(const Tensor& dy, Context& context) override {
    learn(context);
    take_old();
    return inner_->backward(dy, context);
  }
};

// A resumed run reads this rank's shards but does not gather other ranks' shards. So all other values are still the initial
// values of a new model.
void resume_without_gathering(Run& run) {
  const auto all_values = [&] {
    std::vector<std::vector<float>> all;
    for (const Bucket& bucket : run.training.buckets().all()) {
      const auto values = bucket.values.values<float>();
      all.emplace_back(values.begin(), values.end());
    }
    return all;
  };
  const auto initial = all_values();
  run.steps(1);
  for (std::size_t i = 0; i < initial.size(); ++i) {
    const Bucket& bucket = run.training.buckets().all()[i];
    const auto mine = bucket.value_shard.values<float>();
    const std::vector<float> read(mine.begin(), mine.end());
    std::ranges::copy(initial[i], bucket.values.values<float>().begin());
    std::ranges::copy(read, mine.begin());
  }
}

}  // namespace

std::vector<Mistake> mistakes_in_weights() {
  return {
      {.about = "one shard or stage skips a step, as it alone saw an overflow",
       .layouts = {"dp2.z1", "dp2.z3", "dp1.tp2", "dp1.pp2"},
       .proof = "differs",
       .make = reduce_by<SkipsAlone>},
      {.about = "one replica skips a step, as it alone saw an overflow",
       .layouts = {"dp2", "dp3"},
       .proof = "step 1: block.0.attention.norm.gain@dp1 differs",
       .make = reduce_by<SkipsAlone>},
      {.about = "updated shards are not gathered",
       .layouts = {"dp2.z1", "dp3.z2", "dp2.tp2.z1", "dp1.cp2.z1"},
       .proof = "step 2: loss",
       .make = reduce_by<Unpublished>},
      {.about = "ZeRO-3 gathers the first block's values before the update",
       .layouts = {"dp2.z3", "dp3.z3", "dp2.tp2.z3"},
       .proof = "step 2: loss",
       .change = wrap_blocks<GatheredEarly>},
      {.about = "under hpz, the backward pass has the secondary shards of the step before",
       .layouts = {"dp2.rep2.z3.hpz", "dp1.rep2.z3.hpz"},
       .proof = "step 2: norm",
       .change = wrap_blocks<OldSecondaryShards>},
      {.about = "moments are kept in bf16",
       .layouts = {"dp1", "dp2.z1", "dp2.z3"},
       .proof = "step 1: moment1/block.0.attention.norm.gain differs",
       .make = reduce_by<MomentsInBf16>},
      {.about = "norms and biases decay, as they were flattened into one tensor with the matrices",
       .layouts = {"dp1", "dp2.z1", "dp2.z3", "dp1.tp2"},
       .proof = "step 1: block.0.attention.norm.gain differs",
       .make =
           [](Run& run) {
             for (const ParameterPointer& p : run.training.parameters()) p->decays = true;
           }},
      {.about = "the learning rate takes a step with each of 6 micro-batches",
       .layouts = {"dp1", "dp1.pp2"},
       .proof = "step 1: block.0.attention.norm.gain differs",
       .setting =
           [](TrainingOptions& o) {
             o.optimizer.rate.warmup *= 6;
             *o.optimizer.rate.steps *= 6;
           },
       .change =
           [](TrainingOptions& o, const Mesh&) {
             o.optimizer.rate.warmup /= 6;
             *o.optimizer.rate.steps /= 6;
           }},
      {.about = "a resumed run does not gather the shards that it read",
       .layouts = {"dp2.z1", "dp2.tp2.z1", "dp3.z2"},
       .proof = "step 2: loss",
       .make = resume_without_gathering},
      {.about = "a resumed run has empty moments",
       .layouts = {"dp1", "dp2.z1", "dp2.z3"},
       .proof = "step 2: block.0.attention.norm.gain differs",
       .make =
           [](Run& run) {
             run.steps(1);
             each_moment(run, [](float) { return 0.0f; });
           }},
      {.about = "a resumed run restarts Adam's bias correction",
       .layouts = {"dp1", "dp2.z1"},
       .proof = "step 2: block.0.attention.norm.gain differs",
       .make =
           [](Run& run) {
             run.steps(1);
             run.training.optimizer().set_steps(0);
           }},
      {.about = "a resumed run restarts at step 0",
       .layouts = {"dp1", "dp2.z1"},
       .proof = "step 2: loss",
       .make =
           [](Run& run) {
             run.steps(1);
             run.training.resume_at(0, run.training.samples());
           }},
  };
}

}  // namespace chorale::zoo
