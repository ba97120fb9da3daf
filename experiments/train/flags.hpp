// The training options (model, batch, learning rate, optimizer). Their names are those that Megatron-LM users know. `Flags`
// turns them into TrainingOptions.
#pragma once
#include <string>
#include <vector>

#include "experiments/train/dataset.hpp"
#include "experiments/train/shape_options.hpp"
#include "parallel/step/training.hpp"
#include "src/base/options.hpp"

namespace chorale::train {

class Flags {
 public:
  void declare(Options& options);
  // `threads`: the threads per rank if --threads is not given. Throws a usage error if options contradict each other.
  TrainingOptions training(int threads, const Layout& layout) const;
  // The limits of legal layouts: the shape, the number of ranks (`world`) and the batch sizes. If no micro-batch size was
  // given, it stays 0 here, so that each layout that an error recommends gets its own default.
  LayoutLimits limits(const TrainingOptions& options, std::int64_t world) const {
    return {options.shape, world, options.global_batch, micro_batch_, &all_axes(), options.context};
  }
  // The same limits before the layout is known. A global batch size of 0 fits any layout, because it will be computed from
  // the number of replicas.
  LayoutLimits limits(std::int64_t world, const ContextOptions& context = {}) const {
    return {shape_.shape(), world, global_batch_, micro_batch_, &all_axes(), context};
  }
  void take_type(const std::string& dtype) { dtype_ = dtype; }  // instead of the default
  std::int64_t steps() const { return steps_; }
  // A warning if the default warm-up of the learning rate takes most of the steps; else "".
  std::string long_warmup(const Options& options) const;
  const DocumentMask& document_mask() const { return document_mask_; }
  const ShapeOptions& shape_options() const { return shape_; }

 private:
  void take_batch(TrainingOptions& o, const Layout& layout) const;
  ShapeOptions shape_;
  DocumentMask document_mask_;
  void declare_rate(Options& options);
  LearningRate rate() const;
  LearningRate rate_{.warmup = 10};
  Relative first_rate_, lowest_rate_{1e-4};
  double warmup_share_ = 0;
  std::int64_t steps_ = 100, decay_steps_ = 0;
  std::string dtype_ = "f32", numerics_ = "fast", recompute_ = "none", optimizer_ = "adamw";
  std::int64_t global_batch_ = 8, micro_batch_ = 0, accumulation_ = 0, seed_ = 1234, threads_ = 0;
  std::int64_t scale_window_ = 1000, hysteresis_ = 2;
  bool no_masters_ = false;
  double beta1_ = 0.9, beta2_ = 0.95, epsilon_ = 1e-8, decay_ = 0.1, momentum_ = 0.9, clip_ = 1, first_scale_ = 32768;
};

}  // namespace chorale::train
