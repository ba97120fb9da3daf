#include "experiments/train/records.hpp"

#include <algorithm>
#include <cmath>

#include "experiments/common/each.hpp"

namespace chorale::train {
namespace {

struct Phase {
  const char* name;
  double StepResult::*seconds;  // the phase's time in the result; null if 0 is recorded
};
constexpr Phase phases[] = {{"forward", &StepResult::forward},
                            {"backward", &StepResult::backward},
                            {"optimizer", &StepResult::optimizer},
                            {"comm_exposed", &StepResult::exposed},
                            {"comm_hidden", &StepResult::hidden},
                            {"file_exposed", &StepResult::tier_exposed},
                            {"file_hidden", &StepResult::tier_hidden},
                            {"bubble", &StepResult::bubble},
                            {"data", &StepResult::data},
                            {"io", nullptr}};

// The indices of the model's blocks that have experts.
std::vector<std::string> numbers_of_expert_blocks(const ModelShape& shape) {
  std::vector<std::string> numbers;
  for (std::int64_t block = 0; block < shape.layers; ++block)
    if (shape.has_experts(block)) numbers.push_back(std::to_string(block));
  return numbers;
}

}  // namespace

void TrainRow::set_rates(double flops_per_token, double peak_flops, double exposed, double bubble) {
  tokens_per_s = static_cast<double>(tokens) / step_time;
  mfu = peak_flops > 0 ? tokens_per_s * flops_per_token / peak_flops : NAN;
  comm_share = exposed / step_time;
  bubble_share = bubble / step_time;
}

Table& table_of_steps(Recorder& recorder) {
  return recorder.table<TrainRow>({.group = "train", .rows = "step", .live = true});
}

RankShare share_of(const StepResult& result, const Training& training, bool told_to_stop) {
  const Ledger& ledger = training.memory().ledger();
  RankShare share{
      .result = result, .most = ledger.total_peak(), .free = training.memory().kept(), .told_to_stop = told_to_stop};
  for (std::size_t c = 0; c < categories; ++c) {
    share.bytes[c] = ledger.current(static_cast<Category>(c));
    share.peak[c] = ledger.peak(static_cast<Category>(c));
    share.at_peak[c] = ledger.at_peak(static_cast<Category>(c));
  }
  return share;
}

TrainRecords::TrainRecords(Recorder& recorder, const ModelShape& shape, std::int64_t interval)
    : recorder_(recorder),
      train_(table_of_steps(recorder)),
      eval_(recorder.table<EvalRow>({.group = "eval", .rows = "step", .live = true})),
      phases_(
          recorder.table<PhaseRow>({.group = "phases", .rows = "step", .dimensions = {{"phase", names_of_rows(phases)}}})),
      memory_(
          recorder.table<MemoryRow>({.group = "memory",
                                     .rows = "step",
                                     .dimensions = {{"category", {std::begin(category_names), std::end(category_names)}}}})),
      drops_(shape.experts.capacity > 0),
      flops_per_token_(shape.flops_per_token()),
      interval_(interval) {
  if (shape.experts.count > 0)
    experts_ = &recorder.table<ExpertsRow>({.group = "experts",
                                            .rows = "step",
                                            .dimensions = {{.name = "block", .labels = numbers_of_expert_blocks(shape)},
                                                           {.name = "expert", .size = shape.experts.count}}});
}

TrainRow TrainRecords::step(const StepResult& r, const ChoiceCounts& counts, double time, double seconds, double peak_flops,
                            const std::vector<RankShare>& shares) {
  PhaseRow phase{.step = r.step};
  MemoryRow memory{.step = r.step};
  double exposed = 0, bubble = 0;
  std::int64_t most = 0;
  for (const RankShare& share : shares) {
    for (const Phase& p : phases) phase.phase_time.push_back(p.seconds ? share.result.*p.seconds : 0);
    memory.bytes.insert(memory.bytes.end(), std::begin(share.bytes), std::end(share.bytes));
    memory.peak.insert(memory.peak.end(), std::begin(share.peak), std::end(share.peak));
    memory.at_peak.insert(memory.at_peak.end(), std::begin(share.at_peak), std::end(share.at_peak));
    memory.free.push_back(share.free.bytes);
    memory.largest_free.push_back(share.free.largest);
    exposed += share.result.exposed;
    bubble += share.result.bubble;
    most = std::max(most, share.most);
  }
  TrainRow row{.step = r.step,
               .time = time,
               .loss = r.loss,
               .lr = r.rate,
               .grad_norm = r.gradient_norm,
               .loss_scale = r.loss_scale,
               .step_time = seconds,
               .tokens = r.tokens,
               .peak_bytes = most,
               .skipped = r.skipped,
               .dropped_share = drops_ ? counts.dropped_share() : NAN};
  const auto ranks = static_cast<double>(shares.size());
  row.set_rates(flops_per_token_, peak_flops, exposed / ranks, bubble / ranks);
  recorder_.append(train_, row);
  ++steps_;
  recorder_.append(phases_, phase);
  recorder_.append(memory_, memory);
  if (recorder_.due(r.step)) recorder_.flush();
  return row;
}

void TrainRecords::choices(const ChoiceCounts& counts, std::int64_t step, bool is_last) {
  if (!experts_) return;
  row_.chosen.resize(static_cast<std::size_t>(counts.blocks() * counts.experts));
  row_.dropped.resize(static_cast<std::size_t>(counts.blocks()));
  auto sum = row_.chosen.begin();
  for (std::int64_t block = 0; block < counts.blocks(); ++block) {
    for (const std::int64_t tokens : counts.chosen(block)) *sum++ += tokens;
    row_.dropped[static_cast<std::size_t>(block)] += counts.dropped(block);
  }
  row_.step = step;
  ++row_.steps;
  if (step % interval_ != 0 && !is_last) return;
  recorder_.append(*experts_, row_);
  row_ = {};
}

void TrainRecords::evaluation(std::int64_t step, double loss, std::int64_t tokens) {
  recorder_.append(eval_, EvalRow{step, loss, std::exp(loss), tokens});
}

}  // namespace chorale::train
