#include "experiments/train/records.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace chorale::train {
namespace {

const std::vector<std::string> phases{"forward",     "backward", "optimizer", "comm_exposed",
                                      "comm_hidden", "bubble",   "data",      "io"};

struct Share {
  double phases[8];
  std::int64_t bytes[categories], peak[categories];
  std::int64_t most;  // of all categories at once
};

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

std::string Records::share(const StepResult& r, const Ledger& ledger) {
  Share mine{{r.forward, r.backward, r.optimizer, r.exposed, r.hidden, r.bubble, r.data, 0}, {}, {}, ledger.total_peak()};
  for (std::size_t c = 0; c < categories; ++c) {
    mine.bytes[c] = ledger.current(static_cast<Category>(c));
    mine.peak[c] = ledger.peak(static_cast<Category>(c));
  }
  return {reinterpret_cast<const char*>(&mine), sizeof mine};
}

void Records::step(const StepResult& r, double time, double seconds, double mfu, const std::vector<std::string>& shares) {
  PhaseRow phase{.step = r.step};
  MemoryRow memory{.step = r.step};
  double exposed = 0, bubble = 0;
  std::int64_t most = 0;
  for (const std::string& text : shares) {
    Share share;
    std::memcpy(&share, text.data(), sizeof share);
    phase.phase_time.insert(phase.phase_time.end(), std::begin(share.phases), std::end(share.phases));
    memory.bytes.insert(memory.bytes.end(), std::begin(share.bytes), std::end(share.bytes));
    memory.peak.insert(memory.peak.end(), std::begin(share.peak), std::end(share.peak));
    exposed += share.phases[3], bubble += share.phases[5];
    most = std::max(most, share.most);
  }
  const double all = seconds * static_cast<double>(shares.size());
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
                                    .comm_share = exposed / all,
                                    .bubble_share = bubble / all,
                                    .peak_bytes = most,
                                    .skipped = r.skipped});
  recorder_.append(phases_, phase);
  recorder_.append(memory_, memory);
  if (recorder_.due(r.step)) recorder_.flush();
}

void Records::evaluation(std::int64_t step, double loss, std::int64_t tokens) {
  recorder_.append(eval_, EvalRow{step, loss, std::exp(loss), tokens});
}

}  // namespace chorale::train
