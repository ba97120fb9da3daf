#include "experiments/train/loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/common/scale.hpp"
#include "parallel/state/replicas.hpp"
#include "src/base/text.hpp"

namespace chorale::train {
namespace {

// The share of dropped expert choices, as text to show beside the speed. Dropped choices make a step faster, but MFU still
// counts their flops.
std::string words_for_drops(const Training& training) {
  if (training.options().shape.experts.capacity == 0) return "";
  return "  dropped " + quantity(training.choices().dropped_share(), Unit::percent, 2);
}

Progress::Screen screen_for(const Loop::Parts& parts) {
  return parts.run.recorder && parts.session.run_name.empty() ? Progress::screen_at(parts.session.log_level)
                                                              : Progress::Screen{};
}

}  // namespace

std::string note_peak(RunRecord& run, const ProductPeak& peak) {
  run.recorder->number("peak_flops", static_cast<std::int64_t>(peak.flops()));
  run.recorder->text("/", "peak", peak.text());
  return peak.text();
}

void LoopOptions::declare(Options& o) {
  saving.declare(o);
  keeping.declare(o);
  o.add("eval-interval", eval_interval, "steps between evaluations; 0: only at the end").range(0, 1e9);
  o.add("eval-samples", eval_samples, "held-out samples per evaluation").range(1, 1e7).changes(Effect::learning);
  o.add("log-interval", log_interval, "steps between printed lines").range(1, 1e9);
  on_nan.declare(o);
  o.add("replica-interval", replica_interval,
        "steps between comparisons of the copies of weights and moments on different ranks; 0: never")
      .range(0, 1e9)
      .changes(Effect::speed);
}

Loop::Loop(const Parts& parts, LoopOptions& options, std::int64_t last_step)
    : parts_(parts),
      options_(options),
      last_step_(last_step),
      read_(parts.data.training()),
      screen_(screen_for(parts)),
      progress_("train", last_step, parts.session.clock, screen_),
      began_(parts.session.clock.seconds()) {}

std::string Loop::run() try {
  Training& training = parts_.training;
  Saving& saving = options_.saving;
  // A rank died after the last step, before its state was saved, and the state came from a snapshot.
  if (training.steps() >= last_step_ && saving.any()) saving.save(parts_.session, parts_.run, training, true);
  while (training.steps() < last_step_) {
    const double start = parts_.session.clock.seconds();
    const std::optional<StepResult> result = step();
    if (!result) continue;
    bool stop = report(*result, parts_.session.clock.seconds() - start);
    options_.keeping.stepped(parts_.session, parts_.run, training);
    const bool last = training.steps() == last_step_;
    if (options_.eval_interval > 0 && result->step % options_.eval_interval == 0 && !last) stop |= evaluate();
    if (parts_.records) parts_.records->choices(training.choices(), result->step, stop || last);
    const bool saves = saving.any() && (stop || last || saving.due(result->step));
    const bool compares = options_.replica_interval > 0 && (saves || result->step % options_.replica_interval == 0);
    if (compares && training.mesh().world().size() > 1) compare_replicas();
    if (saves) saving.save(parts_.session, parts_.run, training, stop || last);
    if (!stop) continue;
    if (parts_.records) parts_.run.log.warn("stopped by a signal after step {}", result->step);
    return "stopped";
  }
  if (screen_.terminal) progress_.finish();
  if (!evaluate()) return "ok";
  if (parts_.records) parts_.run.log.warn("stopped by a signal after step {}, during its evaluation", last_step_);
  return "stopped";
} catch (const std::exception& error) {
  keep_reason(parts_.run, error);
  throw;
}

// Returns nullopt if the step failed and training was rolled back to a checkpoint.
std::optional<StepResult> Loop::step() {
  Training& training = parts_.training;
  parts_.session.runtime->now(fmt::format("step {}", training.steps() + 1));
  try {
    const StepResult result = training.step(read_);
    training.check_activations();
    options_.on_nan.stepped();
    parts_.accounting.stepped(result);
    return result;
  } catch (const NotFinite& error) {
    parts_.accounting.leave_out("a step was repeated to find NaN or Inf");
    try {
      options_.saving.finish(parts_.session, parts_.run);
    } catch (const Error& trouble) {
      give_up(error, "before, a checkpoint could not be saved: " + on_one_line(trouble.what()));
    }
    const bool has_saved = options_.saving.newest_step() >= 0;
    return options_.on_nan.handle(
        error, training, parts_.run,
        has_saved ? options_.saving.folder_for(parts_.run) : std::filesystem::path(parts_.loaded_from));
  }
}

bool Loop::report(const StepResult& result, double seconds) {
  const Training& training = parts_.training;
  const double flops = static_cast<double>(result.tokens) / seconds * training.options().shape.flops_per_token();
  RankShare mine = share_of(result, training, parts_.signals.pending().has_value());
  mine.faster_than_peak = flops > parts_.peak.flops() && !parts_.peak.measured_again();
  mine.save_is_written = options_.saving.is_written();
  const std::vector<RankShare> shares = exchange(training.mesh().world(), mine);
  if (std::ranges::all_of(shares, &RankShare::save_is_written)) options_.saving.finish(parts_.session, parts_.run);
  if (shares[0].faster_than_peak || (parts_.peak.measured_again() && flops > parts_.peak.flops())) exceed_peak(flops);
  if (parts_.records) {
    const double time = parts_.session.clock.seconds() - began_;
    const TrainRow row = parts_.records->step(result, training.choices(), time, seconds, parts_.peak.flops(), shares);
    say(result, fmt::format("{:.0f} tokens/s  MFU {}{}", row.tokens_per_s, quantity(row.mfu, Unit::percent, 2),
                            words_for_drops(training)));
    for (const auto& [rank, words] : parts_.stragglers->step(shares))
      parts_.run.log.warn("rank {} on {} is slow: {}", rank, parts_.ranks[rank].host, words);
  }
  return std::ranges::any_of(shares, &RankShare::told_to_stop);
}

// Called on all ranks. On the first call, CPU ranks measure the peak again. On later calls, and with GPUs, the step's rate
// becomes the peak.
void Loop::exceed_peak(double flops) {
  const bool first = parts_.peak.may_measure_again();
  parts_.peak.exceeded(flops);
  if (!parts_.run.recorder) return;
  parts_.run.log.warn("a step reached {:.0f} GFLOP/s, more than the peak that MFU refers to; {} {}", flops / 1e9,
                      first ? "measured again:" : "it becomes the peak:", note_peak(parts_.run, parts_.peak));
}

void Loop::say(const StepResult& result, const std::string& speed) {
  const std::string why_skipped = !result.skipped           ? ""
                                  : std::isnan(result.loss) ? "  skipped: NaN or Inf"
                                                            : "  skipped: the loss scale was too high";
  const std::string note = fmt::format("loss {:.4f}  {}{}", result.loss, speed, why_skipped);
  if (screen_.terminal) progress_.update(result.step, note);
  if (result.step % options_.log_interval == 0 || result.step == last_step_)
    parts_.run.log.result("step {}/{}  {}  |g| {:.3f}  lr {:.2e}", result.step, last_step_, note, result.gradient_norm,
                          result.rate);
}

// Returns true, on all ranks, if a signal ended the evaluation early. Launchers kill the ranks a second or two after Ctrl-C,
// so a long evaluation must not delay the completion of the record.
bool Loop::evaluate() {
  Training& training = parts_.training;
  const std::int64_t samples = options_.eval_samples_of(parts_.data);
  if (samples == 0) return false;
  parts_.session.runtime->now(fmt::format("the evaluation after step {}", training.steps()));
  const std::optional<double> found =
      training.evaluate_unless_cut(parts_.data.validation(), samples, [&] { return parts_.signals.pending().has_value(); });
  if (!found) parts_.accounting.leave_out("an evaluation was cut short");
  if (!found) return true;
  const double loss = *found, floor = parts_.data.floor();
  parts_.accounting.evaluated();
  if (!parts_.records) return false;
  parts_.records->evaluation(training.steps(), loss, samples * training.options().shape.sequence);
  parts_.run.log.result("step {}: held-out loss {:.4f}, perplexity {:.2f}{}", training.steps(), loss, std::exp(loss),
                        floor > 0 ? fmt::format(", {:.1f} % above the floor", 100 * (loss / floor - 1)) : "");
  return false;
}

// Also called before a checkpoint is saved, so that no checkpoint contains a replica that differs from the other replicas.
void Loop::compare_replicas() {
  parts_.session.runtime->now(fmt::format("comparing replicas after step {}", parts_.training.steps()));
  require_equal_replicas(parts_.training);
}

}  // namespace chorale::train
