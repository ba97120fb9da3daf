// The training options (model, batch, learning rate, optimizer). Their names are those that Megatron-LM users know. `Flags`
// turns them into TrainingOptions.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/train/dataset.hpp"
#include "parallel/training.hpp"
#include "src/base/options.hpp"
#include "src/base/settings.hpp"

namespace chorale::train {

// Each model preset, as values of these options.
std::vector<Preset> presets();
// Return a stored model's shape as values of these options. The first reads a checkpoint, and is empty if there is no
// readable one. The second reads a Hugging Face model folder.
Foreign read_checkpoint_shape(const std::filesystem::path& path);
Foreign read_hugging_face_shape(const std::filesystem::path& folder);

// ", 0.53 of them active" for a model with experts, where a token uses some of the parameters; else "".
std::string words_for_active(const ModelShape& shape);

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
    return {shape(), world, global_batch_, micro_batch_, &all_axes(), context};
  }
  std::int64_t steps() const { return steps_; }
  const DocumentMask& document_mask() const { return document_mask_; }
  // Both throw a usage error with the two values if an option contradicts the shape of a stored model. require_own_shape
  // allows a shorter sequence. It refuses any other shape option that the command line, the environment or a preset sets,
  // even if the value agrees.
  void require_shape(const ModelShape& model, const std::string& path) const;
  void require_own_shape(const ModelShape& model, const std::string& path) const;

 private:
  ModelShape shape() const;  // throws if the shape is invalid
  ModelShape unchecked_shape() const;
  [[noreturn]] void refuse_shape(const std::string& name, const std::string& asked, const std::string& there,
                                 const std::string& path, const std::string& otherwise = "") const;
  void take_batch(TrainingOptions& o, const Layout& layout) const;
  const Options* options_ = nullptr;  // the declared options, which know the source of each value
  ModelShape shape_;
  DocumentMask document_mask_;
  void declare_experts(Options& options);
  void declare_rate(Options& options);
  LearningRate rate() const;
  LearningRate rate_{.warmup = 10};
  Relative first_rate_, lowest_rate_{1e-4};
  double warmup_share_ = 0;
  std::optional<double> capacity_;  // of experts; without a value no token is dropped
  std::int64_t steps_ = 100, decay_steps_ = 0;
  std::string dtype_ = "f32", numerics_ = "fast", recompute_ = "none", optimizer_ = "adamw";
  std::int64_t global_batch_ = 8, micro_batch_ = 0, accumulation_ = 0, ffn_ = 0, groups_ = 0, seed_ = 1234, threads_ = 0;
  std::int64_t scale_window_ = 1000, hysteresis_ = 2;
  bool untied_ = false, no_masters_ = false;
  double beta1_ = 0.9, beta2_ = 0.95, epsilon_ = 1e-8, decay_ = 0.1, momentum_ = 0.9, clip_ = 1, first_scale_ = 32768;
};

}  // namespace chorale::train
