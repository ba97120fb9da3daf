#include "experiments/train/records.hpp"

#include <cmath>

namespace chorale::train {
namespace {

const std::vector<std::string> phases{"forward",     "backward", "optimizer", "comm_exposed",
                                      "comm_hidden", "bubble",   "data",      "io"};

}  // namespace

Records::Records(Recorder& recorder)
    : recorder_(recorder),
      train_(recorder.table<TrainRow>({.group = "train", .rows = "step", .live = true})),
      eval_(recorder.table<EvalRow>({.group = "eval", .rows = "step", .live = true})),
      phases_(recorder.table<PhaseRow>({.group = "phases", .rows = "step", .dimensions = {{"phase", phases}}})),
      memory_(recorder.table<MemoryRow>(
          {.group = "memory",
           .rows = "step",
           .dimensions = {{"category", {std::begin(category_names), std::end(category_names)}}}})) {}

void Records::step(const StepResult& r, double time, double seconds, double mfu, const Ledger& ledger) {
  recorder_.append(train_, TrainRow{.step = r.step,
                                    .time = time,
                                    .loss = r.loss,
                                    .lr = r.rate,
                                    .grad_norm = r.gradient_norm,
                                    .loss_scale = r.loss_scale,
                                    .step_time = seconds,
                                    .tokens = r.tokens,
                                    .tokens_per_s = static_cast<double>(r.tokens) / seconds,
                                    .mfu = mfu,
                                    .skipped = r.skipped});
  recorder_.append(phases_, PhaseRow{r.step, {r.forward, r.backward, r.optimizer, 0, 0, 0, r.data, 0}});
  MemoryRow memory{.step = r.step};
  for (std::size_t c = 0; c < categories; ++c) {
    memory.bytes.push_back(ledger.current(static_cast<Category>(c)));
    memory.peak.push_back(ledger.peak(static_cast<Category>(c)));
  }
  recorder_.append(memory_, memory);
  if (recorder_.due(r.step)) recorder_.flush();
}

void Records::evaluation(std::int64_t step, double loss, std::int64_t tokens) {
  recorder_.append(eval_, EvalRow{step, loss, std::exp(loss), tokens});
}

}  // namespace chorale::train
