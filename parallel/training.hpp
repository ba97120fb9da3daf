// Training: the model, its optimizer, and the loop of one step. A parallel strategy edits four seams of it and nothing else: layers of the
// model, run_batch, the reducer of gradients, the optimizer.
//
//   step:  for each micro-batch: forward, backward (gradients grow)  →  ‖g‖, clip  →  optimizer  →  cast
//
// One contract for scale: every rank backpropagates the *summed* loss; one division by the tokens of the whole batch comes at the end.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "layers/gpt.hpp"
#include "layers/learning_rate.hpp"
#include "layers/loss_scaler.hpp"
#include "layers/optimizer.hpp"
#include "src/base/clock.hpp"

namespace chorale {

struct TrainingOptions {
  ModelShape shape;
  Remake remake = Remake::none;
  DType compute = DType::f32;
  std::string numerics = "fast";
  std::int64_t global_batch = 8, micro_batch = 8;  // sequences
  std::string optimizer = "adamw";
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, decay = 0.1, momentum = 0.9;
  double clip = 1;  // of the gradient's norm; 0: none
  LearningRate rate;
  LossScaler scaler;
  std::uint64_t seed = 1234;
  int threads = 1;
};

// Fills the inputs and their next tokens (each samples × sequence, −1 where a target is not counted) of samples number `first` on.
using ReadSamples = std::function<void(std::int64_t first, std::int64_t samples, std::span<std::int32_t> inputs,
                                       std::span<std::int32_t> targets)>;

struct StepResult {
  std::int64_t step = 0;  // from 1
  double loss = 0, gradient_norm = 0, rate = 0, loss_scale = 1;
  std::int64_t tokens = 0;
  bool skipped = false;
  double data = 0, forward = 0, backward = 0, optimizer = 0;  // seconds
};

class Training {
 public:
  Training(const TrainingOptions& options, Memory& memory, Clock& clock);

  StepResult step(const ReadSamples& read);
  // The mean loss over samples 0 … samples − 1 of another reader; no dropout, no gradients.
  double evaluate(const ReadSamples& read, std::int64_t samples);

  std::int64_t steps() const { return steps_; }
  std::int64_t samples() const { return samples_; }  // consumed so far: the cursor of the data
  const TrainingOptions& options() const { return options_; }
  const Ledger& ledger() const { return ledger_; }
  const Model& model() const { return model_; }
  Optimizer& optimizer() { return *optimizer_; }
  LossScaler& scaler() { return options_.scaler; }
  void resume_at(std::int64_t steps, std::int64_t samples);

  // Of the newest micro-batch: bytes that the tape held, and what the layers had declared.
  std::int64_t activation_bytes() const { return activation_bytes_; }
  std::int64_t declared_activation_bytes();

 private:
  struct MicroBatch {
    Tensor inputs;
    Context context;
  };
  Context context(std::int64_t first_sample, std::int64_t samples);
  MicroBatch read_batch(const ReadSamples& read, std::int64_t cursor, std::int64_t place, std::int64_t samples);
  void run_batch(const ReadSamples& read, StepResult& result);
  double mean_loss(std::int64_t tokens) const;
  double gradient_norm(double scale) const;
  void clear_gradients();
  void each_site(const std::function<void(Site&)>& visit);
  void check_sums();
  [[noreturn]] void name_birth(const ReadSamples& read);

  TrainingOptions options_;
  Clock& clock_;
  Ledger ledger_;
  Allocator memory_;
  std::unique_ptr<Numerics> numerics_;
  Model model_;
  std::vector<ParameterPointer> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  Tensor loss_;
  Tape tape_;
  std::int64_t steps_ = 0, samples_ = 0, activation_bytes_ = 0;
};

}  // namespace chorale
