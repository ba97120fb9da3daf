#include "experiments/train/nan_policy.hpp"

#include <fmt/format.h>

#include "parallel/state/resume.hpp"
#include "src/base/text.hpp"

namespace chorale::train {
namespace {

constexpr int most_skips = 10, most_rolls = 3;

}  // namespace

void give_up(const NotFinite& error, const std::string& why) {
  const std::vector<std::string> lines = split(error.what(), '\n');
  throw Error(Exit::runtime, lines.at(0), {trim(lines.at(1)), why, trim(lines.at(2))});
}

void NanPolicy::declare(Options& o) {
  o.add("on-nan", name_, "what to do if a step's loss or gradients are NaN or Inf; roll-back needs a checkpoint")
      .one_of({"abort", "skip", "roll-back"})
      .changes(Effect::learning);
}

void NanPolicy::check(bool saves_or_loads) const {
  if (name_ == "roll-back" && !saves_or_loads)
    usage_error("--on-nan roll-back needs a checkpoint", "--no-save is given, and no --load",
                "leave out --no-save, and give --save-interval");
}

std::optional<StepResult> NanPolicy::handle(const NotFinite& error, Training& training, RunRecord& run,
                                            const std::filesystem::path& checkpoints) {
  if (name_ == "abort") throw error;
  const std::int64_t step = training.steps() + 1;
  const std::string said = on_one_line(error.what());
  if (name_ == "skip") {
    if (error.weights_spoiled) give_up(error, "weights are NaN or Inf, so skipping the step does not help");
    if (++skips_ > most_skips) give_up(error, fmt::format("{} steps in a row were skipped", most_skips));
    run.log.warn("the step is skipped: {}", said);
    note(run, {.step = step, .next_step = step + 1, .action = 0});
    return training.skip_step();
  }
  if (checkpoints.empty()) give_up(error, "no checkpoint was saved before, so there is nothing to roll back to");
  const std::int64_t after = training.samples() + training.options().batch.global;
  std::int64_t saved = -1;
  try {
    const Checkpoint checkpoint = Checkpoint::open(checkpoints, run.log, peers_of(training.mesh()));
    saved = checkpoint.metadata().step;
    rolls_ = saved == rolled_to_ ? rolls_ + 1 : 1;
    if (rolls_ <= most_rolls) resume(training, checkpoint);
  } catch (const Error& trouble) {
    give_up(error, "no checkpoint can be loaded: " + on_one_line(trouble.what()));
  }
  if (rolls_ > most_rolls) give_up(error, fmt::format("training went back to step {} {} times", saved, most_rolls));
  rolled_to_ = saved;
  training.skip_samples_to(after);
  run.log.warn("training goes back to step {} and skips the samples up to here: {}", saved, said);
  note(run, {.step = step, .next_step = saved + 1, .action = 1});
  return std::nullopt;
}

void NanPolicy::note(RunRecord& run, const MishapRow& row) {
  if (!run.recorder) return;
  if (!table_) table_ = &run.recorder->table<MishapRow>({.group = "mishaps", .rows = "mishap"});
  run.recorder->append(*table_, row);
}

}  // namespace chorale::train
