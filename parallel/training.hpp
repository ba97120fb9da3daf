// Training: a rank's part of the model, its optimizer, and the loop of one step. A parallel strategy edits four seams of it and nothing else:
// layers of the model (tensor.hpp, zero.hpp), the run of a batch (pipeline/run.hpp), the reducer of gradients (reducer.hpp), and what the
// optimizer owns (buckets.hpp).
//
//   step:  for each micro-batch: forward, backward (gradients grow)  →  one gradient on all replicas  →  ‖g‖, clip  →  update  →  publish
//
// One contract for scale: every rank backpropagates the *summed* loss; gradients are added over every axis that shares a parameter; one
// division by the tokens of the whole batch, on all ranks, comes at the end.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "layers/learning_rate.hpp"
#include "layers/loss_scaler.hpp"
#include "layers/optimizer.hpp"
#include "parallel/batch_totals.hpp"
#include "parallel/stage.hpp"
#include "parallel/step_account.hpp"
#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/math/device_kernels.hpp"

namespace chorale {

struct TrainingOptions {
  ModelShape shape;
  Remake remake = Remake::none;
  DType compute = DType::f32;
  std::string numerics = "fast";
  std::int64_t global_batch = 8, micro_batch = 8;  // sequences
  std::string optimizer = "adamw";
  bool masters = true;  // f32 copies of 16-bit parameters; without, bf16 is updated itself, rounded by chance
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, decay = 0.1, momentum = 0.9;
  double clip = 1;  // of the gradient's norm; 0: none
  LearningRate rate;
  LossScaler scaler;
  std::uint64_t seed = 1234;
  int threads = 1;
  const DevicePlugin* device = nullptr;  // of a GPU, where it computes on one; null: the host
  std::int64_t device_bytes = 0;         // of it, in which products work beside all tensors
  std::string reducer = "bucketed";      // or naive, without ZeRO
  std::int64_t bucket_bytes = 25 << 20;  // of gradients
  bool partition_activations = false;    // tensor ranks share what full recomputation keeps
  std::int64_t memory_limit = 0;         // bytes of this rank; 0: none
  BuildModel build = {};                 // the layers, where they are not build_gpt's

  Queue queue() const { return queue_on(device, threads); }
};

// Fills the inputs and their next tokens (each samples × sequence, −1 where a target is not counted) of samples number `first` on.
using ReadSamples = std::function<void(std::int64_t first, std::int64_t samples, std::span<std::int32_t> inputs,
                                       std::span<std::int32_t> targets)>;

class Training {
 public:
  Training(const TrainingOptions& options, Memory& memory, Clock& clock);  // on one rank
  Training(const TrainingOptions& options, Mesh mesh, Memory& memory, Clock& clock);
  Training(const Training&) = delete;

  StepResult step(const ReadSamples& read);
  // The mean loss over samples 0 … samples − 1 of another reader; no dropout, no gradients. All ranks get it.
  double evaluate(const ReadSamples& read, std::int64_t samples);

  std::int64_t steps() const { return steps_; }
  std::int64_t samples() const { return samples_; }  // consumed so far: the cursor of the data
  const TrainingOptions& options() const { return options_; }
  const Mesh& mesh() const { return mesh_; }
  const Ledger& ledger() const { return ledger_; }
  const std::vector<ParameterPointer>& parameters() const { return parameters_; }
  Optimizer& optimizer() { return *optimizer_; }
  Buckets& buckets() { return *buckets_; }
  LossScaler& scaler() { return options_.scaler; }
  std::unique_ptr<Reducer>& reducer() { return reducer_; }  // seams: another one may stand before these, or in their place
  std::unique_ptr<ShardBoundary>& boundary() { return boundary_; }
  void resume_at(std::int64_t steps, std::int64_t samples);
  void publish();  // after the optimizer's state was written to: everybody's values follow

  const PipelineSchedule& schedule() const { return schedule_; }
  StepAccount& account() { return account_; }
  const StepAccount& account() const { return account_; }
  // Of the newest micro-batch through the first chunk: bytes that its tape held, and what the layers had declared.
  std::int64_t activation_bytes() const { return activation_bytes_; }
  std::int64_t declared_activation_bytes();

 private:
  using Prepare = std::function<void(MicroBatch&)>;
  // What all ranks come to.
  struct Outcome {
    double loss = 0;  // the mean over the tokens
    std::int64_t tokens = 0;
    double gradient_norm = 0;  // as if the batch had the most tokens
  };
  Context context(std::int64_t first_sample, std::int64_t samples);
  std::unique_ptr<MicroBatch> open(const ReadSamples& read, std::int64_t cursor, std::int64_t place, std::int64_t samples);
  bool has_loss() const { return stage_.ends() && mesh_.tensor().rank() == 0; }  // where it counts, once
  PipelineTimes run_samples(const ReadSamples& read, std::int64_t cursor, std::int64_t samples,
                            const PipelineSchedule& schedule, const Prepare& prepare);
  PipelineTimes run_batch(const ReadSamples& read, const Prepare& prepare);
  std::optional<Outcome> add_up(std::int64_t most_tokens, const SquareSum& squares);
  SquareSum squares_of_gradients(double scale);
  void each_site(const std::function<void(SumSite&)>& visit);
  std::optional<Error> trouble_of_sums();
  [[noreturn]] void name_first_nan(const ReadSamples& read);

  TrainingOptions options_;
  Mesh mesh_;
  Clock& clock_;
  Ledger ledger_;
  Allocator memory_;
  std::unique_ptr<Numerics> numerics_;
  std::unique_ptr<ShardBoundary> boundary_;
  Stage stage_;
  std::vector<ParameterPointer> parameters_;
  std::unique_ptr<Buckets> buckets_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Reducer> reducer_;
  PipelineSchedule schedule_;
  std::int64_t tokens_ = 0;   // of a batch, where the loss is
  BatchTotals batch_totals_;  // of a batch
  StepAccount account_;
  std::int64_t steps_ = 0, samples_ = 0, activation_bytes_ = 0;
};

}  // namespace chorale
