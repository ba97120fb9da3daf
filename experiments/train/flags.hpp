// The options of training, under the names that users of Megatron-LM know, and what they come to: a model, a batch, an optimizer.
#pragma once
#include <string>
#include <vector>

#include "parallel/training.hpp"
#include "src/base/options.hpp"

namespace chorale::train {

// Every preset of the table of models, as settings of these options.
std::vector<Preset> presets();

class Flags {
 public:
  void declare(Options& options);
  TrainingOptions training(int threads, const Layout& layout) const;  // throws a usage error for what cannot be
  // What a layout must fit, a micro-batch that follows from the layout left open, so that others may be recommended.
  LayoutLimits limits(const TrainingOptions& options, std::int64_t world) const {
    return {options.shape, world, options.global_batch, micro_batch_};
  }
  // The same before the layout is whole: a batch that follows from the replicas divides by them.
  LayoutLimits limits(std::int64_t world) const { return {shape(), world, global_batch_, micro_batch_}; }
  std::int64_t steps() const { return rate_.steps; }
  void take_shape(const ModelShape& shape);  // of a model that comes with its own

 private:
  ModelShape shape() const;  // throws for one that cannot be
  void take_batch(TrainingOptions& o, const Layout& layout) const;
  ModelShape shape_;
  LearningRate rate_{.decay = "cosine", .peak = 1e-3, .minimum = 1e-4, .warmup = 10, .steps = 100};
  std::string dtype_ = "f32", numerics_ = "fast", recompute_ = "none", optimizer_ = "adamw";
  std::int64_t global_batch_ = 8, micro_batch_ = 0, accumulation_ = 0, ffn_ = 0, groups_ = 0, seed_ = 1234, threads_ = 0;
  std::int64_t scale_window_ = 1000, hysteresis_ = 2;
  bool untied_ = false, no_masters_ = false;
  double beta1_ = 0.9, beta2_ = 0.95, epsilon_ = 1e-8, decay_ = 0.1, momentum_ = 0.9, clip_ = 1, first_scale_ = 32768;
};

}  // namespace chorale::train
