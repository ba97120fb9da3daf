// Training a transformer in your own program: `#include <chorale/train.hpp>`. This header also includes the headers of the
// collectives. examples/ has two such programs.
//
//   TrainingOptions                     the model, the batch, the optimizer, the numerics (training.hpp)
//   Trainer(options, "dp2.tp2", …)      the library's training step, on any layout
//   LocalModel(options, memory)         the complete model on this rank, for a training loop and a parallelism of your own
//   synthetic_language, in_order        training data (data.hpp)
//   plan_step(options, "dp2.tp2", 4, 0) the memory and the traffic of a step, without running it (plan.hpp)
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <chorale/chorale.hpp>
#include <chorale/data.hpp>
#include <chorale/plan.hpp>
#include <chorale/training.hpp>

namespace chorale {

struct StepResult {
  std::int64_t step = 0;  // steps count from 1
  double loss = 0, gradient_norm = 0, rate = 0, loss_scale = 1;
  std::int64_t tokens = 0;
  bool skipped = false;
  std::int64_t updates = 1, rolled_back = 0;  // number of updates, and of updates that were undone (updates.hpp)
  // Seconds on this rank. The first six values are disjoint and add up to the duration of the step. `data` is the time for
  // reading samples. `forward` and `backward` are the times of the passes. `optimizer` is the time of all other computation.
  // `exposed` is the time spent waiting for collectives. `bubble` is the time spent waiting for other pipeline stages.
  // `hidden` is the time in which communication was in flight and the rank did not wait. On a device, these values are
  // device times, up to the point at which the step waits for the device. The time of the update is reported with the next
  // step.
  double data = 0, forward = 0, backward = 0, optimizer = 0, exposed = 0, bubble = 0, hidden = 0;
  // With offload to a file, `tier_exposed` is the time spent waiting for the file. The other times include `tier_exposed`.
  // `tier_hidden` is the time in which transfers were in flight and the rank did not wait.
  double tier_exposed = 0, tier_hidden = 0;
};

// A Trainer is this rank's part of a training run on all ranks. A Trainer contains this rank's part of the model, the
// optimizer, and the training step. All ranks must call each function that is marked "collective". A layout such as
// "dp2.tp2.z1" says how the ranks divide the model and its data (docs/parallel.md). If the layout does not name dp, the size
// of dp is the number of ranks divided by the product of the other sizes.
class Trainer {
 public:
  // Collective. `backend` is the same as for open_world. `algorithm` is one of the names that `chorale show` lists, for all
  // collectives that have such an algorithm; auto: the fastest for each call. If batch.micro is 0, a micro-batch is one
  // sequence with pipeline stages, and the replica's complete share of the batch without pipeline stages. Throws a usage
  // error if the layout does not fit the model, the batch or the ranks.
  Trainer(const TrainingOptions& options, const std::string& layout, const mpi::Runtime& runtime, Clock& clock,
          const std::string& backend = "auto", const std::string& algorithm = "auto");
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  // Collective. Trains on the next batch. `read` is called only for this rank's samples.
  StepResult step(const ReadSamples& read);
  // Collective. Returns the mean loss over the first `samples` samples of `read`, without dropout, and without computing
  // gradients.
  double evaluate(const ReadSamples& read, std::int64_t samples);

  // Collective. Saves a checkpoint of this step in `folder`. A Trainer with any layout can load the checkpoint.
  void save(const std::string& folder);
  // Collective. Continues from a checkpoint. `path` is a checkpoint set, or a folder of checkpoint sets. From a folder, the
  // newest undamaged set is loaded.
  void load(const std::string& path);

  std::int64_t steps() const;         // steps so far
  std::int64_t samples() const;       // samples consumed so far, by all ranks together
  const std::string& layout() const;  // the layout with all sizes, such as "dp2.tp2.z1"
  const Ledger& ledger() const;       // the bytes that this rank holds
  RankPlan measured() const;          // measured counts of the newest step, which equal plan_step with the same arguments

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// A parameter of a LocalModel. The values and gradients are stored in the memory that was passed to the LocalModel.
struct LocalParameter {
  std::string name;  // "block.0.attention.qkv.weight"
  Slice value, gradient;
};

// A LocalModel is the complete model on this rank, without any communication. Your program sums the gradients over its
// ranks. These options matter: shape (without experts), compute, numerics, recompute, seed, batch.global and optimizer.
//
//   model.begin();                         sets gradients and loss to zero
//   model.pass(read, first, samples);      forward and backward: adds to the gradients and to the loss
//   for (p : model.parameters()) world.all_reduce(p.gradient);      world.all_reduce(model.loss());
//   model.update();                        the mean loss of the batch; the weights change
class LocalModel {
 public:
  LocalModel(const TrainingOptions& options, Allocator& memory);
  ~LocalModel();

  void begin();
  // Runs the forward and backward pass for `samples` samples of the step's batch, from sample `first` on. The batch has
  // batch.global samples.
  void pass(const ReadSamples& read, std::int64_t first, std::int64_t samples);
  const std::vector<LocalParameter>& parameters() const;
  Slice loss() const;  // the sum of the losses of all tokens since begin(); in exact numerics, an i64 in fixed-point units
  // Ends the step. The gradients and the loss must be sums over the complete batch. update() divides both by the number of
  // tokens in the batch, including tokens without a target. Returns the mean loss. Throws an error if a sum of exact
  // numerics overflowed.
  double update();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace chorale
