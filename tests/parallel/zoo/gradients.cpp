// Mistakes in the sums of gradients over micro-batches, replicas and stages.
#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/parallel/zoo/mistake.hpp"

namespace chorale::zoo {
namespace {

// The gradient is three times too large, as if the division by the number of replicas were missing. In pipelines, the wrong
// factor is often the number of micro-batches.
struct TooLarge : Before {
  using Before::Before;
  void finish() override {
    inner->finish();
    for (const Owned& owned : run.training.buckets().owned())
      for (std::int64_t& g : owned.gradient.values<std::int64_t>()) g *= 3;
  }
};

// Only the gradient of the last micro-batch is reduced. The sum over the earlier micro-batches stays local.
struct LastAlone : Before {
  using Before::Before;
  void begin(std::int64_t micro_batches) override {
    last_ = micro_batches;
    seen_.clear();
    inner->begin(micro_batches);
  }
  void ready(const Parameter& p) override {
    if (++seen_[&p] == last_ - 1) {
      const auto gradient = p.gradient.values<std::int64_t>();
      own_[&p].assign(gradient.begin(), gradient.end());
      std::fill(gradient.begin(), gradient.end(), 0);
    }
    inner->ready(p);
  }
  void finish() override {
    inner->finish();
    for (const auto& [p, own] : own_) {
      const auto gradient = p->gradient.values<std::int64_t>();
      for (std::size_t i = 0; i < own.size(); ++i) gradient[i] += own[i];
    }
  }

 private:
  std::int64_t last_ = 0;
  std::map<const Parameter*, std::int64_t> seen_;
  std::map<const Parameter*, std::vector<std::int64_t>> own_;
};

// Counts unmasked targets in the newest micro-batch on this rank, in the step so far on this rank, and in the complete
// batch.
struct CountsTargets : Before {
  CountsTargets(Run& to, std::unique_ptr<Reducer> before) : Before(to, std::move(before)) {
    to.read = [this, read = to.read](std::int64_t first, std::int64_t samples, const SampleRows& rows) {
      read(first, samples, rows);
      const Training& training = run.training;
      newest = 0;
      for (std::int64_t sample = 0; sample < samples; ++sample)
        for (const std::int64_t place : training.cut().places(training.mesh().context().rank()))
          newest += rows.targets[static_cast<std::size_t>(sample * training.cut().sequence() + place)] >= 0;
      own += newest;
      const std::int64_t batch = training.options().batch.global;
      std::vector<std::int32_t> inputs(static_cast<std::size_t>(batch * training.cut().sequence())), targets(inputs.size());
      read(first / batch * batch, batch, {inputs, targets});
      all = std::ranges::count_if(targets, [](std::int32_t target) { return target >= 0; });
    };
  }
  void begin(std::int64_t count) override {
    micro_batches = count;
    own = 0;
    inner->begin(count);
  }
  std::int64_t newest = 0, own = 0, all = 0, micro_batches = 0;
};

// Each replica, or each rank of a replica that splits sequences, takes the mean over its own tokens. The means are then
// averaged over ranks. The average is correct only if all ranks have the same number of unmasked tokens.
struct LocalMeans : CountsTargets {
  using CountsTargets::CountsTargets;
  void ready(const Parameter& p) override {
    if (++seen_[&p] % micro_batches == 0) {
      const Mesh& mesh = run.training.mesh();
      const double right = static_cast<double>(all) / (mesh.data().size() * mesh.context().size());
      for (std::int64_t& g : p.gradient.values<std::int64_t>())
        g = std::llround(static_cast<double>(g) * right / static_cast<double>(own));
    }
    inner->ready(p);
  }

 private:
  std::map<const Parameter*, std::int64_t> seen_;
};

// The same mistake as LocalMeans, but for micro-batches. The gradient is the average of the micro-batches' means.
struct MeansOfMicroBatches : CountsTargets {
  using CountsTargets::CountsTargets;
  void begin(std::int64_t count) override {
    sums_.clear();
    CountsTargets::begin(count);
  }
  void ready(const Parameter& p) override {
    const auto gradient = p.gradient.values<std::int64_t>();
    auto& sum = sums_[&p];
    sum.resize(gradient.size());
    const double right = static_cast<double>(all) / static_cast<double>(micro_batches * run.training.mesh().data().size());
    for (std::size_t i = 0; i < sum.size(); ++i)
      gradient[i] = sum[i] += std::llround(static_cast<double>(gradient[i] - sum[i]) * right / static_cast<double>(newest));
    inner->ready(p);
  }

 private:
  std::map<const Parameter*, std::vector<std::int64_t>> sums_;
};

// The gradients of micro-batches are added in bf16, so sums have only eight significant bits.
struct SumsOfEightBits : Before {
  using Before::Before;
  void ready(const Parameter& p) override {
    for (std::int64_t& g : p.gradient.values<std::int64_t>()) {
      const int excess = std::bit_width(static_cast<std::uint64_t>(std::abs(g))) - 8;
      if (excess > 0) g = std::llround(std::ldexp(static_cast<double>(g), -excess)) << excess;
    }
    inner->ready(p);
  }
};

// Gradients are not zeroed at the start of a step, so they still contain the gradients of the previous step.
struct NeverCleared : Before {
  using Before::Before;
  void begin(std::int64_t micro_batches) override {
    inner->begin(micro_batches);
    for (std::size_t i = 0; i < before_.size(); ++i) std::ranges::copy(before_[i], gradients(i).begin());
  }
  void finish() override {
    inner->finish();
    before_.resize(run.training.buckets().all().size());
    for (std::size_t i = 0; i < before_.size(); ++i) before_[i].assign(gradients(i).begin(), gradients(i).end());
  }

 private:
  std::span<std::int64_t> gradients(std::size_t bucket) const {
    return run.training.buckets().all()[bucket].gradients.values<std::int64_t>();
  }
  std::vector<std::vector<std::int64_t>> before_;
};

template <class F>
void each_bucket(Run& run, F change) {
  for (Bucket& bucket : run.training.buckets().all()) change(bucket);
}

void sum_no_gains(Run& run) {
  each_bucket(run, [](Bucket& bucket) { bucket.sums.clear(); });
}

}  // namespace

std::vector<Mistake> mistakes_in_gradients() {
  return {
      {.about = "a gradient N times too large, as it was not divided by the number of replicas",
       .layouts = {"dp3", "dp3.z1", "dp3.z2", "dp3.z3", "dp1.cp2", "dp1.cp3.z2"},
       .proof = "step 1: norm",
       .make = reduce_by<TooLarge>},
      {.about = "a gradient m times too large under a pipeline of m micro-batches",
       .layouts = {"dp1.pp3", "dp2.pp2.z2"},
       .proof = "step 1: norm",
       .make = reduce_by<TooLarge>},
      {.about = "each replica takes the mean over its own tokens",
       .layouts = {"dp2", "dp3", "dp3.z1", "dp2.tp2"},
       .proof = "step 1: norm",
       .make = reduce_by<LocalMeans>},
      {.about = "under context parallelism, the loss is divided by the shard's own tokens",
       .layouts = {"dp1.cp2", "dp1.cp3.z1", "dp2.cp2", "dp1.tp2.cp2"},
       .proof = "step 1: norm",
       .make = reduce_by<LocalMeans>},
      {.about = "gradient accumulation averages the means of micro-batches with different numbers of unmasked tokens",
       .layouts = {"dp1", "dp2", "dp2.z1", "dp1.tp2"},
       .proof = "step 1: norm",
       .make = reduce_by<MeansOfMicroBatches>},
      {.about = "gradients add up in bf16",
       .layouts = {"dp1", "dp2.z1", "dp2.tp2"},
       .proof = "step 1: norm",
       .make = reduce_by<SumsOfEightBits>},
      {.about = "gradients are not cleared after a step",
       .layouts = {"dp1", "dp2", "dp1.tp2"},
       .proof = "step 2: norm",
       .make = reduce_by<NeverCleared>},
      {.about = "only the last micro-batch's gradient is reduced",
       .layouts = {"dp2", "dp2.tp2", "dp2.pp2"},
       .proof = "step 1: norm",
       .make = reduce_by<LastAlone>},
      {.about = "hybrid shards are not summed over the groups that repeat them",
       .layouts = {"dp2.rep2.z3", "dp2.rep2.z1", "dp1.rep2.z2"},
       .proof = "step 1: norm",
       .make = [](Run& run) { each_bucket(run, [](Bucket& bucket) { bucket.other_shards = nullptr; }); }},
      {.about = "the first and the last stage do not sum their gradients of a tied table",
       .layouts = {"dp1.pp2", "dp2.pp2.z1", "dp2.pp2.z2", "dp2.pp2.z3"},
       .proof = "step 1: norm",
       .make = [](Run& run) { each_bucket(run, [](Bucket& bucket) { bucket.stages = nullptr; }); }},
      {.about = "under sequence parallelism, the ranks' gradients of gains and shifts are not summed",
       .layouts = {"dp1.tp2.sp", "dp2.tp2.z1.sp", "dp2.tp3.z3.sp", "dp1.tp2.pp2.sp"},
       .proof = "step 1: norm",
       .make = sum_no_gains},
      {.about = "under sequence parallelism, the naive reducer does not sum the ranks' gradients of gains and shifts",
       .layouts = {"dp1.tp2.sp", "dp2.tp3.sp"},
       .proof = "step 1: norm",
       .setting = [](TrainingOptions& o) { o.replicas.reducer = ReducerKind::naive; },
       .make = sum_no_gains},
  };
}

}  // namespace chorale::zoo
