#include "experiments/train/saving.hpp"

#include <fmt/format.h>

#include "parallel/state/resume.hpp"
#include "parallel/step/assemble.hpp"
#include "src/base/text.hpp"
#include "src/record/run_folder.hpp"

namespace chorale::train {
namespace {

// The bytes of the weights (or of their f32 masters) and of the moments in a checkpoint.
std::int64_t bytes_of_state(const TrainingOptions& o) {
  const bool keeps_16_bits = o.compute != DType::f32 && o.compute != DType::f64 && !o.optimizer.masters;
  const std::int64_t wide = o.compute == DType::f64 ? 8 : 4, weight = keeps_16_bits ? 2 : wide;
  const std::int64_t value = o.update == UpdateTime::delayed ? size_of(o.compute) : 0;  // saved in addition to the masters
  return o.shape.parameters() * (weight + wide * std::ssize(rule_of(o.optimizer)->moments()) + value);
}

}  // namespace

void Saving::declare(Options& o) {
  const Option& none = o.add("no-save", none_, "make no checkpoints");
  o.add("save-interval", interval_, "steps between checkpoints; 0: only at the end").range(0, 1e9).only_with(none, false);
  o.add("save-dir", folder_, "save checkpoints in this folder instead of the run's, such as one in /dev/shm")
      .alias("save")
      .words("DIR")
      .only_with(none, false);
  o.add("async-save", in_background_, "train on while a checkpoint is written; needs memory for a copy of the state")
      .changes(Effect::speed)
      .only_with(none, false);
  o.add("on-save-error", on_error_, "what to do if a checkpoint other than the last cannot be saved, as on a full disk")
      .one_of({"abort", "continue"})
      .only_with(none, false);
}

std::string Saving::check(const std::filesystem::path& runs, const TrainingOptions& options, std::int64_t steps) const {
  if (none_) return "";
  if (!folder_.empty()) require_writable(folder_, "--save-dir");
  if (in_background_ && options.offload.any())
    usage_error("--async-save keeps a copy of the state in memory", "--place moves it out of memory",
                "leave out --async-save or --place");
  std::error_code unknown;
  const std::filesystem::path folder = folder_.empty() ? runs : std::filesystem::path(folder_);
  const std::filesystem::space_info space = std::filesystem::space(nearest_existing(folder, unknown), unknown);
  if (unknown) return "";
  const std::int64_t set = bytes_of_state(options), saves = 1 + (interval_ > 0 ? (steps - 1) / interval_ : 0);
  const std::int64_t at_once = std::min<std::int64_t>(saves, 3);  // two sets are kept while a third is written
  const auto free = static_cast<std::int64_t>(space.available);
  if (free < set)
    usage_error(
        "there is no room for a checkpoint",
        fmt::format("a checkpoint needs about {}; {} has {} left", human_bytes(set), folder.string(), human_bytes(free)),
        "free space, choose another folder with --run-dir or --save-dir, or use --no-save");
  if (free >= at_once * set) return "";
  return fmt::format("{} has {} left; {} checkpoints of about {} do not fit: later saves may fail", folder.string(),
                     human_bytes(free), at_once, human_bytes(set));
}

// Runs a stage of a save. Returns false if the stage failed and the run is allowed to continue without this checkpoint.
template <class Do>
bool Saving::carry_out(RunRecord& run, std::int64_t step, bool may_fail, Do&& stage) {
  try {
    stage();
    return true;
  } catch (const std::exception& error) {  // every rank throws, but not the same error
    if (!may_fail || on_error_ == "abort" || exit_code_of(error) == static_cast<int>(Exit::watchdog)) throw;
    run.log.warn("step {} was not saved, and training goes on: {}", step, on_one_line(error.what()));
    return false;
  }
}

std::filesystem::path Saving::folder_for(const RunRecord& run) const {
  return folder_.empty() ? run.folder / "checkpoints" : std::filesystem::absolute(folder_).lexically_normal();
}

void Saving::save(Session& session, RunRecord& run, Training& training, bool last) {
  finish(session, run);
  if (run.recorder) run.recorder->flush();
  const std::int64_t step = training.steps();
  session.runtime->now(fmt::format("saving step {}", step));
  const std::filesystem::path folder = folder_for(run);
  const Metadata metadata = metadata_of(training, session.options.toml());
  const double begun = session.clock.seconds();
  const auto passed = [&] { return session.clock.seconds() - begun; };
  if (in_background_ && !last) {
    carry_out(run, step, true, [&] {
      pending_ = std::make_unique<BackgroundSave>(folder, metadata, state_to_save(training), peers_of(training.mesh()),
                                                  session.clock);
    });
    copied_seconds_ = passed();
    return;
  }
  SavedSet set;
  const auto write = [&] { set = save_checkpoint(folder, metadata, state_to_save(training), peers_of(training.mesh())); };
  if (carry_out(run, step, !last, write)) saved(session, run, set, {.step = step, .exposed = passed()});
}

void Saving::finish(Session& session, RunRecord& run) {
  if (!pending_) return;
  const std::int64_t step = pending_->step();
  session.runtime->now(fmt::format("saving step {}", step));
  const double waits = session.clock.seconds();
  SavedSet set;
  const auto pending = std::move(pending_);
  if (!carry_out(run, step, true, [&] { set = pending->finish(); })) return;
  const double exposed = copied_seconds_ + session.clock.seconds() - waits;
  saved(session, run, set, {.step = step, .exposed = exposed, .hidden = pending->hidden_seconds()});
}

void Saving::saved(Session& session, RunRecord& run, const SavedSet& set, const SaveRow& times) {
  newest_ = times.step;
  const std::string path = (folder_for(run) / fmt::format("step-{}", times.step)).string();
  if (Flight* const flight = session.runtime->flight()) flight->saved(path);
  if (!run.recorder) return;
  if (!table_) table_ = &run.recorder->table<SaveRow>({.group = "saves", .rows = "step"});
  SaveRow row = times;
  row.bytes = set.bytes;
  run.recorder->append(*table_, row);
  run.log.result("saved {}: {}, training waited {}{}", path, human_bytes(set.bytes), human_seconds(row.exposed),
                 row.hidden > 0 ? fmt::format(", {} more were hidden", human_seconds(row.hidden)) : "");
  if (set.file_systems > 1 && !std::exchange(said_not_shared_, true))
    run.log.warn(
        "the hosts do not share {}: checkpoints lie in parts on {} file systems, and can be loaded once every host "
        "has all files",
        folder_for(run).string(), set.file_systems);
}

}  // namespace chorale::train
