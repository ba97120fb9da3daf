// A Training holds one rank's part of the model and of the optimizer, and runs training steps. A parallel strategy can
// change only four aspects of a step: the layers (tensor.hpp, zero.cpp), the order of the passes (run_pipeline.hpp), the
// reduction of gradients (reducer.hpp), and the elements that a rank's optimizer updates (buckets.hpp).
//
//   step:  each micro-batch: forward, backward (gradients add up)  →  reduce gradients  →  ‖g‖, clip  →  update  →  publish
//
// With ZeRO-1 and 2, publish gathers the parameter values that other ranks updated. Without ZeRO and with ZeRO-3, publish
// sends nothing.
//
// Gradients are scaled only once. Every rank backpropagates the *summed* loss, and gradients are summed over ranks. The
// optimizer divides the summed gradients by the number of unmasked tokens in the global batch.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include <chorale/clock.hpp>
#include <chorale/training.hpp>
#include "layers/choice_counts.hpp"
#include "layers/optimizer.hpp"
#include "parallel/step/batch_totals.hpp"
#include "parallel/step/connections.hpp"
#include "parallel/step/rank_memory.hpp"
#include "parallel/step/rows.hpp"
#include "parallel/step/stage.hpp"
#include "parallel/step/step_account.hpp"
#include "parallel/step/updates.hpp"
#include "src/base/error.hpp"
#include "src/math/device_kernels.hpp"

namespace chorale {

class Training {
 public:
  Training(const TrainingOptions& options, Memory& memory, Clock& clock);  // on one rank
  Training(const TrainingOptions& options, Mesh mesh, Memory& memory, Clock& clock);
  Training(const Training&) = delete;

  // Throws NotFinite (first_nan.hpp) on all ranks if the loss or the gradients are NaN or Inf. If only gradients overflow
  // and the loss scale can be lowered, the step is skipped instead. After an exception, the program can retry the step with
  // different samples, or skip the step.
  StepResult step(const ReadSamples& read);
  StepResult skip_step();  // counts a step without an update, and consumes the step's samples; all ranks must call this
                           // function
  void skip_samples_to(std::int64_t cursor) { samples_ = cursor; }
  // Returns the mean loss over the first `samples` samples of `read`, such as validation data, without dropout or gradients.
  // All ranks must call this function.
  double evaluate(const ReadSamples& read, std::int64_t samples);
  // Like evaluate(), but the evaluation ends early after `is_cut` has returned true on any rank. All ranks then return
  // nullopt. `is_cut` is called between micro-batches, or once every few micro-batches in a pipeline. If `is_cut` is empty,
  // the evaluation always completes.
  std::optional<double> evaluate_unless_cut(const ReadSamples& read, std::int64_t samples,
                                            const std::function<bool()>& is_cut);

  std::int64_t steps() const { return steps_; }
  std::int64_t samples() const { return samples_; }  // samples consumed so far: the data cursor
  const TrainingOptions& options() const { return options_; }
  const Mesh& mesh() const { return mesh_; }
  const RankMemory& memory() const { return memory_; }
  void settle_update() {
    updates_->settle();
  }  // waits for a delayed update; must be called before optimizer states are
     // used
  // Bytes read from and written to the offload tier since clear_tier_traffic(), in passes and in updates.
  const TierTraffic& tier_passes() const { return buckets_->traffic(); }
  const TierTraffic& tier_updates() const { return memory_.updates(); }
  void clear_tier_traffic() { buckets_->traffic() = memory_.updates() = {}; }
  const std::vector<ParameterPointer>& parameters() const { return parameters_; }
  Optimizer& optimizer() { return *optimizer_; }
  Buckets& buckets() { return *buckets_; }
  LossScaler& scaler() { return options_.scaler; }
  // Each replace_… function replaces one component of the training step. `with` takes the component and returns its
  // replacement, which can wrap the original component.
  template <class Part>
  using Replacement = std::function<std::unique_ptr<Part>(std::unique_ptr<Part>)>;
  void replace_reducer(const Replacement<Reducer>& with) { reducer_ = with(std::move(reducer_)); }
  void replace_boundary(const Replacement<ShardBoundary>& with);
  void replace_attention(const Replacement<AttentionScheme>& with);  // the argument of `with` is null if ranks do not divide
                                                                     // sequences
  // Must be called after the optimizer states have been read from a checkpoint. `reads_values` states whether this rank's
  // value shards were also read.
  void resume_at(std::int64_t steps, std::int64_t samples, bool reads_values = false);
  // Must be called after the optimizer's weights have been changed. Casts these weights to the parameters' type, then
  // publishes the values as at the end of a step.
  void publish();

  const PipelineSchedule& schedule() const { return schedule_; }
  const TokenCut& cut() const { return connections_.cut; }
  const ChoiceCounts& choices() const { return choices_; }  // expert choices of the newest step, over all ranks
  const RouterBalance& balance() const { return balance_; }
  const AttentionWork& attention_work() const { return connections_.attention_work; }
  StepAccount& account() { return account_; }
  const StepAccount& account() const { return account_; }
  // Activation bytes that one micro-batch keeps in the first chunk. activation_bytes() returns the bytes measured on the
  // newest micro-batch. declared_activation_bytes() returns the bytes that the layers declare.
  std::int64_t activation_bytes() const { return activation_bytes_; }
  std::int64_t declared_activation_bytes();
  // Throws if the layers kept a different number of bytes than they declare. If the declared number is an upper bound,
  // throws only if the layers kept more bytes. Plans and the choice of a layout rely on the declared bytes.
  void check_activations();

 private:
  using Prepare = std::function<void(MicroBatch&)>;
  // Results of one batch, combined over all ranks.
  struct Outcome {
    double loss = 0;           // the mean over the unmasked tokens
    std::int64_t tokens = 0;   // the number of unmasked tokens
    double gradient_norm = 0;  // norm of the gradients, divided by the number of all tokens, including masked tokens
  };
  OptimizerTier optimizer_tier();
  Queue update_queue() const;  // the queue on which the optimizer computes
  RunContext run_context();
  Context context(std::int64_t first_sample, std::int64_t samples);
  std::int64_t tokens_here() const { return cut().tokens(mesh_.context().rank()); }  // this rank's tokens of each sample
  Keeps declared();
  std::unique_ptr<MicroBatch> open(const ReadSamples& read, std::int64_t cursor, std::int64_t place, std::int64_t samples);
  // True on ranks whose loss counts: tensor-parallel rank 0 of the stage with the head. (All tensor-parallel ranks compute
  // the same loss.)
  bool has_loss() const { return stage_.ends() && mesh_.tensor().rank() == 0; }
  PipelineTimes run_samples(const ReadSamples& read, std::int64_t cursor, std::int64_t samples,
                            const PipelineSchedule& schedule, const std::vector<std::size_t>& read_by,
                            const Prepare& prepare, const std::function<bool(std::int64_t micro_batch)>& ends_before = {});
  PipelineTimes run_batch(const ReadSamples& read, const Prepare& prepare);
  std::optional<Outcome> add_up(std::int64_t most_tokens, const SquareSum& squares, std::span<std::int64_t> counts = {});
  SquareSum squares_of_gradients(double scale);
  void each_site(const std::function<void(SumSite&)>& visit);
  std::optional<Error> trouble_of_sums();
  [[noreturn]] void name_first_nan(const ReadSamples& read);

  TrainingOptions options_;
  Mesh mesh_;
  Clock& clock_;
  StepAccount account_;  // traces all kernels and calls, so it must outlive them
  RankMemory memory_;
  std::unique_ptr<Numerics> numerics_, host_numerics_;  // host_numerics_: for gradients that are offloaded from a GPU to the
                                                        // host
  Connections connections_;
  Stage stage_;
  std::vector<ParameterPointer> parameters_;
  std::unique_ptr<Buckets> buckets_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Reducer> reducer_;
  std::unique_ptr<Updates> updates_;
  PipelineSchedule schedule_;
  std::vector<std::size_t> read_by_;  // see read_at_latest()
  ChoiceCounts choices_;
  RouterBalance balance_;
  BatchTotals batch_totals_;
  std::int64_t steps_ = 0, samples_ = 0, activation_bytes_ = 0;
};

}  // namespace chorale
