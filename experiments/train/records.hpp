// The tables in the record of a training run. The tables /train, /phases and /memory have one row per step, and /eval has
// one row per evaluation. The table /experts has one row per interval of steps, because a row can have thousands of values.
// A simulated run (simulated.hpp) writes the same rows to /train and to /pipeline (gantt.hpp).
#pragma once
#include <limits>
#include <tuple>
#include <vector>

#include "experiments/common/run_record.hpp"
#include "parallel/step/training.hpp"

namespace chorale::train {

struct TrainRow {
  std::int64_t step = 0;
  double time = 0, loss = 0, lr = 0, grad_norm = 0, loss_scale = 1, step_time = 0;
  std::int64_t tokens = 0;
  double tokens_per_s = 0, mfu = 0, comm_share = 0, bubble_share = 0;
  std::int64_t peak_bytes = 0;
  std::uint8_t skipped = 0;
  double dropped_share = std::numeric_limits<double>::quiet_NaN();

  // Sets the columns that are computed from step_time and tokens. `peak_flops`: the peak of all ranks together; 0 if it is
  // unknown. `exposed`: the time of the step, in seconds, in which a rank waited for communication. `bubble`: the time in
  // seconds in which a rank waited for other stages. Both times are averaged over the ranks.
  void set_rates(double flops_per_token, double peak_flops, double exposed, double bubble);

  static auto columns() {
    return std::tuple{
        column("step", &TrainRow::step, "1", "training step, from 1"),
        column("time", &TrainRow::time, "s", "time since the first step began, at the end of the step"),
        column("loss", &TrainRow::loss, "1", "mean cross entropy of the batch, nats per token"),
        column("lr", &TrainRow::lr, "1", "learning rate"),
        column("grad_norm", &TrainRow::grad_norm, "1", "norm of the gradient before clipping"),
        column("loss_scale", &TrainRow::loss_scale, "1", "factor by which the loss is multiplied (f16)"),
        column("step_time", &TrainRow::step_time, "s", "time of the step"),
        column("tokens", &TrainRow::tokens, "1", "tokens whose loss was counted"),
        column("tokens_per_s", &TrainRow::tokens_per_s, "s-1", "tokens of the step divided by its time"),
        column("mfu", &TrainRow::mfu, "1", "model flops per second, as a fraction of the measured peak"),
        column("comm_share", &TrainRow::comm_share, "1",
               "share of the step in which ranks waited for communication, mean over ranks"),
        column("bubble_share", &TrainRow::bubble_share, "1",
               "share of the step in which ranks waited for other stages, mean over ranks"),
        column("peak_bytes", &TrainRow::peak_bytes, "byte", "largest peak memory of any rank so far"),
        column("skipped", &TrainRow::skipped, "", "whether the step was skipped: overflow or NaN", {"no", "yes"}),
        column("dropped_share", &TrainRow::dropped_share, "1",
               "share of the choices of experts that were dropped; NaN if experts have no capacity")};
  }
};

Table& table_of_steps(Recorder& recorder);  // /train

struct EvalRow {
  std::int64_t step = 0;
  double loss = 0, perplexity = 0;
  std::int64_t tokens = 0;
  static auto columns() {
    return std::tuple{column("step", &EvalRow::step, "1", "training step before the evaluation"),
                      column("loss", &EvalRow::loss, "1", "mean cross entropy of held-out samples, nats per token"),
                      column("perplexity", &EvalRow::perplexity, "1", "exp(loss)"),
                      column("tokens", &EvalRow::tokens, "1", "tokens whose loss was counted")};
  }
};

struct PhaseRow {
  std::int64_t step = 0;
  std::vector<double> phase_time;
  static auto columns() {
    return std::tuple{
        column("step", &PhaseRow::step, "1", "training step"),
        column("phase_time", &PhaseRow::phase_time, "s", "time that a rank spent in a phase", {}, {"rank", "phase"})};
  }
};

struct MemoryRow {
  std::int64_t step = 0;
  std::vector<std::int64_t> bytes, peak, at_peak, free, largest_free;
  static auto columns() {
    return std::tuple{
        column("step", &MemoryRow::step, "1", "training step"),
        column("bytes", &MemoryRow::bytes, "byte", "bytes held after the step", {}, {"rank", "category"}),
        column("peak", &MemoryRow::peak, "byte", "peak of the bytes so far", {}, {"rank", "category"}),
        column("at_peak", &MemoryRow::at_peak, "byte",
               "bytes held when the rank held the most so far, all categories together", {}, {"rank", "category"}),
        column("free", &MemoryRow::free, "byte", "free blocks that the rank keeps after the step, to use them again", {},
               {"rank"}),
        column("largest_free", &MemoryRow::largest_free, "byte", "the largest of these blocks", {}, {"rank"})};
  }
};

struct ExpertsRow {
  std::int64_t step = 0, steps = 0;
  std::vector<std::int64_t> chosen, dropped;
  static auto columns() {
    return std::tuple{
        column("step", &ExpertsRow::step, "1", "last training step of the row"),
        column("steps", &ExpertsRow::steps, "1", "number of steps whose choices the row counts"),
        column("chosen", &ExpertsRow::chosen, "1", "tokens that chose the expert, before drops", {}, {"block", "expert"}),
        column("dropped", &ExpertsRow::dropped, "1", "choices of the block that were dropped", {}, {"block"})};
  }
};

// The values that each rank sends to all other ranks after a step, as raw bytes.
struct RankShare {
  StepResult result;
  std::int64_t bytes[categories] = {}, peak[categories] = {};  // by memory category: the bytes now, and their peak so far
  std::int64_t at_peak[categories] = {};  // bytes of each category at the time when their sum was largest
  std::int64_t most = 0;                  // the sum of `at_peak`, which is the peak of the rank's memory
  KeptBlocks free = {};
  bool told_to_stop = false,     // the rank received a signal
      save_is_written = true,    // no checkpoint is being written in the background
      faster_than_peak = false;  // the step's flops per second exceeded the measured peak of matrix products
};
RankShare share_of(const StepResult& result, const Training& training, bool told_to_stop);

// The tables of one run, written by the rank that has the recorder.
class TrainRecords {
 public:
  // `interval`: number of steps per row of /experts. The last row ends with the run's last step, so it can cover fewer
  // steps.
  TrainRecords(Recorder& recorder, const ModelShape& shape, std::int64_t interval);
  TrainRow step(const StepResult& result, const ChoiceCounts& counts, double time, double seconds, double peak_flops,
                const std::vector<RankShare>& shares);                        // returns the row of /train
  void choices(const ChoiceCounts& counts, std::int64_t step, bool is_last);  // with experts; call it after step()
  std::int64_t steps() const { return steps_; }                               // number of rows of /train
  void evaluation(std::int64_t step, double loss, std::int64_t tokens);

 private:
  Recorder& recorder_;
  Table &train_, &eval_, &phases_, &memory_;
  Table* experts_ = nullptr;
  bool drops_;
  double flops_per_token_;
  ExpertsRow row_;  // covers the steps since the last row of /experts
  std::int64_t interval_, steps_ = 0;
};

}  // namespace chorale::train
