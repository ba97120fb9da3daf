// The mistakes of the bug zoo (zoo_test.cpp, zoo_experts_test.cpp). Each mistake is made where it would really occur: in a
// gradient reducer, at a shard boundary (where activations pass between shards), in the samples, or in a resumed run.
// Mistakes are put in through the interfaces that strategies use.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>

#include "parallel/tensor.hpp"
#include "tests/parallel/layouts.hpp"

namespace chorale::zoo {

using test::Run;

// Wraps the gradient reducer of a run. A mistake overrides one or more of the reducer's functions.
struct Before : Reducer {
  explicit Before(Run& to) : run(to), inner(std::move(to.training.reducer())) {}
  void begin(std::int64_t micro_batches) override { inner->begin(micro_batches); }
  void ready(const Parameter& p) override { inner->ready(p); }
  void finish() override { inner->finish(); }
  void publish() override { inner->publish(); }

  Run& run;
  std::unique_ptr<Reducer> inner;
};

template <class Mistaken>
void reduce_by(Run& run) {
  run.training.reducer() = std::make_unique<Mistaken>(run);
}

// A gradient that is three times too large, as if the division by the number of replicas were missing. In pipelines, the
// factor of such a mistake is often the number of micro-batches.
struct TooLarge : Before {
  using Before::Before;
  void finish() override {
    inner->finish();
    for (const Owned& owned : run.training.buckets().owned())
      for (std::int64_t& g : owned.gradient.values<std::int64_t>()) g *= 3;
  }
};

// Only the gradient of the last micro-batch is reduced; the sum of the earlier ones stays local.
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

// Each replica, or each rank of a replica that divides sequences, takes the mean over its own tokens, and these means are
// averaged. The result is right only if all of them have the same number of unmasked tokens.
struct LocalMeans : Before {
  explicit LocalMeans(Run& to) : Before(to) {
    to.read = [this, read = to.read](std::int64_t first, std::int64_t samples, const SampleRows& rows) {
      read(first, samples, rows);
      const Training& training = run.training;
      const std::vector<std::int64_t> places = training.cut().places(training.mesh().context().rank());
      for (std::int64_t sample = 0; sample < samples; ++sample)
        for (const std::int64_t place : places)
          own_ += rows.targets[static_cast<std::size_t>(sample * training.cut().sequence() + place)] >= 0;
      std::vector<std::int32_t> all(static_cast<std::size_t>(12 * run.training.options().shape.sequence)), next(all.size());
      read(first / 12 * 12, 12, {all, next});
      all_ = counted(next);
    };
  }
  void begin(std::int64_t micro_batches) override {
    last_ = micro_batches;
    own_ = 0;
    seen_.clear();
    inner->begin(micro_batches);
  }
  void ready(const Parameter& p) override {
    if (++seen_[&p] == last_) {
      const Mesh& mesh = run.training.mesh();
      const double right = static_cast<double>(all_) / (mesh.data().size() * mesh.context().size());
      for (std::int64_t& g : p.gradient.values<std::int64_t>())
        g = std::llround(static_cast<double>(g) * right / static_cast<double>(own_));
    }
    inner->ready(p);
  }

 private:
  static std::int64_t counted(std::span<const std::int32_t> targets) {
    return std::count_if(targets.begin(), targets.end(), [](std::int32_t t) { return t >= 0; });
  }
  std::int64_t last_ = 0, own_ = 0, all_ = 0;
  std::map<const Parameter*, std::int64_t> seen_;
};

// Rank 1 finds an overflow and skips the step, but the other ranks do not.
struct SkipsAlone : Before {
  using Before::Before;
  void finish() override {
    inner->finish();
    if (run.training.mesh().world().rank() != 1) return;
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

// The gradient norm counts the last stage's copy of the tied embedding table as a separate tensor.
struct CountedTwice : Before {
  using Before::Before;
  void begin(std::int64_t micro_batches) override {
    for (Bucket& bucket : run.training.buckets().all())
      for (Bucket::Place& place : bucket.places) place.counts = place.counts || bucket.stages;
    inner->begin(micro_batches);
  }
};

// Publishing, which brings the updated shards to all ranks, is left out. Each rank keeps the previous values of all other
// shards.
struct Unpublished : Before {
  using Before::Before;
  void publish() override {}
};

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

// Each context rank takes its tokens for the first ones of the sequence.
struct FromTheStart : ShardBoundary {
  Tensor pick(const Tensor& rows, Context& context) const override {
    for (Tokens* tokens : {&context.tokens, &context.stream}) tokens->places = nullptr, tokens->first_token = 0;
    context.places = {};
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

// Each shard of a row-parallel layer adds the bias to its partial sum, so the total contains it once per shard.
template <class Of>
struct BiasOnEach : Of {
  BiasOnEach(Axis& axis, const std::vector<ParameterPointer>& parameters)
      : Of(axis), extra(static_cast<float>(axis.size() - 1)), parameters(parameters) {}
  std::function<Tensor()> start_sum(const Tensor& partial, SumSite& site, Context& context) const override {
    const auto bias = std::find_if(parameters.begin(), parameters.end(),
                                   [&](const ParameterPointer& p) { return p->name + " output" == bias_of(site.name); });
    const auto sum = Of::start_sum(partial, site, context);
    if (bias == parameters.end()) return sum;
    return [sum, b = Tensor((*bias)->value), extra = extra] {
      const Tensor y = sum();
      const std::span<float> all = y.template values<float>(), one = b.template values<float>();
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += extra * one[i % one.size()];
      return y;
    };
  }
  // "block.0.mlp.down output" → "block.0.mlp.down.bias output"
  static std::string bias_of(std::string site) { return site.insert(std::min(site.find(' '), site.size()), ".bias"); }
  float extra;
  std::vector<ParameterPointer> parameters;
};

template <class Of>
void add_bias_on_each(Run& run) {
  run.training.boundary() = std::make_unique<BiasOnEach<Of>>(run.training.mesh().tensor(), run.training.parameters());
}

inline void resume_later(Run& run, std::int64_t samples) {
  run.steps(1);
  run.training.resume_at(run.training.steps(), run.training.samples() + samples);
}

}  // namespace chorale::zoo
