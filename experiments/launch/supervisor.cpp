#include "experiments/launch/supervisor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "experiments/common/advice.hpp"
#include "experiments/common/each.hpp"
#include "experiments/launch/ends.hpp"
#include "parallel/state/checkpoint_sets.hpp"
#include "src/base/available_memory.hpp"
#include "src/base/child_program.hpp"
#include "src/base/error.hpp"
#include "src/base/guard/guard.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"
#include "src/base/wait.hpp"
#include "src/record/run_folder.hpp"

namespace chorale::launch {
namespace {

constexpr double silent_starts = 10;  // how many time limits of a wait a start may take without a sign of life

std::vector<std::pair<std::string, int>> hosts_of(const Request& request) {
  if (!request.hosts.empty()) return request.hosts;
  return {{host_name(), static_cast<int>(request.slots)}};
}

std::vector<std::string> hosts_with_ranks(const Slots& slots) {
  return each(slots.hosts_of_ranks().hosts, [](const auto& host) { return host.first; });
}

}  // namespace

Supervisor::Supervisor(Session& session, const Request& request, const TrainingRun& program, Signals& signals)
    : session_(session),
      request_(request),
      program_(program),
      signals_(signals),
      log_({.level = session.log_level}),
      slots_(hosts_of(request), request.quarantine_seconds),
      layouts_(program.options(), request.hosts.size() < 2),
      restarts_(request.most_restarts),
      record_(request.run_dir, session, slots_.live_hosts(0)),
      control_(record_.folder()),
      began_(session.clock.seconds()),
      free_memory_(available_memory()),
      keepers_(fmt::format("{}-{}", record_.folder().filename().string(), getpid()), record_.folder(), request.hosts.empty(),
               session.clock, log_),
      asked_(layouts_.asked(static_cast<std::int64_t>(slots_.size()))),
      most_ranks_(static_cast<std::int64_t>(slots_.size())) {}

// ── the layout of the next start ──────────────────────────────────────────────────────────────────────────────────────

Situation Supervisor::situation() const {
  constexpr std::int64_t uncounted = 128 << 20;  // as --memory-limit of train
  const std::string& limit = program_.options().option("memory-limit").text;
  const auto live = static_cast<std::int64_t>(slots_.live(now()));
  const std::int64_t share = free_memory_ / std::max<std::int64_t>(1, std::min(live, most_ranks_)) - uncounted;
  return {.live = std::min(live, most_ranks_),
          .fewest = std::min(request_.fewest, most_ranks_),
          .memory_bytes = limit == "0" || !request_.hosts.empty() ? 0 : std::max<std::int64_t>(1, share),
          .asked = asked_,
          .same_layout = request_.same_layout};
}

std::optional<Chosen> Supervisor::best(std::string* why_not) {
  const Situation here = situation();
  return choose(layouts_.between(here.fewest, here.live), here, why_not);
}

// Returns nullopt if the user asked for the end. Throws if no layout can become possible.
std::optional<Chosen> Supervisor::wait_for_layout() {
  constexpr double say_seconds = 10;
  for (double said = -say_seconds;; session_.clock.sleep(0.02)) {
    hear_user_between_starts();
    if (wants_end_) return std::nullopt;
    std::string why_not;
    if (!tend_keepers() && starts_ == 0) continue;  // the first start waits for all hosts
    if (auto chosen = best(&why_not)) return chosen;
    if (slots_.live(now()) == 0 && starts_ == 0)
      throw Error(Exit::runtime, "no host of the launch can be reached",
                  fmt::format("the logs {} say why", (record_.folder() / "keeper-*.log").string()),
                  "check the names of the hosts, and that the launcher of the ranks can start programs there");
    const double back = slots_.next_return(now());
    if (!std::isfinite(back) && starts_ > 0) {
      finish(EventKind::gave_up, "failed", static_cast<int>(Exit::usage), why_not);
    }
    if (!std::isfinite(back))
      usage_error(
          "no layout is possible", why_not,
          fmt::format("give more --ranks, a smaller --min-ranks, or a model and a batch that can be divided: {} plan "
                      "--ranks N --layout all",
                      program()));
    if (now() - said >= say_seconds) {
      log_.info("launch waits: {}; the next slot leaves quarantine in {}", why_not, human_seconds(back - now()));
      said = now();
    }
  }
}

// ── snapshots ─────────────────────────────────────────────────────────────────────────────────────────────────────────

std::int64_t Supervisor::snapshot_interval() const { return keepers_.is_usable() ? request_.snapshot_interval : 0; }

// A host on which no keeper answers is lost, like one whose guard is silent. A host whose keeper still starts is held back.
// Returns whether all hosts are ready.
bool Supervisor::tend_keepers() {
  if (snapshot_interval() == 0) return true;
  for (const std::string& host : keepers_.tend(slots_.returned_hosts(now()))) slots_.lose_host(host, now());
  std::vector<std::string> starting = slots_.returned_hosts(now());
  std::erase_if(starting, [this](const std::string& host) { return keepers_.are_ready({host}); });
  const bool all_are_ready = starting.empty();
  slots_.hold_back(std::move(starting));
  return all_are_ready;
}

std::int64_t Supervisor::saved_step(const std::vector<std::string>& hosts) {
  std::int64_t newest = newest_saved_step(program_.save_dir(record_.folder()));
  for (const KeptStep& step : complete_steps(keepers_.list(hosts))) newest = std::max(newest, step.step);
  return newest;
}

// The ranks fill one host after the other. If snapshots in memory are then out of reach, every host gets a rank.
void Supervisor::assign(std::int64_t ranks) {
  const auto reached = [&](bool spread) {
    slots_.assign(static_cast<int>(ranks), now(), spread);
    return saved_step(hosts_with_ranks(slots_));
  };
  const std::int64_t compact = reached(false);
  if (!request_.hosts.empty() && reached(true) <= compact) reached(false);
}

// ── one start ─────────────────────────────────────────────────────────────────────────────────────────────────────────

EndOfRun Supervisor::start(const Chosen& chosen) {
  const Possible& layout = chosen.layout;
  assign(layout.ranks);
  live_at_start_ = slots_.live(now());
  Watch watch{.run = StartedRun(record_.folder(), now()), .guards = OtherGuards(session_.clock)};
  const bool other_hosts = !request_.hosts.empty();
  const std::string invitation =
      watch.guards.invite(other_hosts ? OtherGuards::Invited::other_hosts : OtherGuards::Invited::this_host);
  setenv(supervisor_variable, invitation.c_str(), 1);
  setenv(keeper_variable, fmt::format("{} {}", keepers_.name(), ++starts_).c_str(), 1);
  RankHosts where = other_hosts ? slots_.hosts_of_ranks() : RankHosts();
  where.variables = own_variables();
  const Launcher launcher;
  if (other_hosts && launcher.reads_host_file()) {
    write_file(record_.folder() / "hosts", where.host_file());
    setenv("SLURM_HOSTFILE", (record_.folder() / "hosts").c_str(), 1);
  }
  const std::int64_t saved = saved_step(hosts_with_ranks(slots_));
  event_.to_layout = layout.layout;
  log_.info("launch: start {} on {}, {} of {} slots{} ({})", starts_, layout.layout, layout.ranks, slots_.size(),
            saved >= 0 ? fmt::format(", from step {}", saved) : "", chosen.why);
  if (running_ && running_->layout != layout.layout && !program_.is_exact())
    log_.warn("the later steps are not bit-identical to those on {}: the numerics are fast (--numerics exact)",
              running_->layout);
  running_ = layout;
  watch.code = launcher.run(
      launcher.command(layout.ranks, program_.command_on(layout.layout, record_.folder(), snapshot_interval()), where), "",
      "", session_.clock, [&](int process) { tend(watch, process); });
  const double ended = now();
  hear_last_words(watch);
  take_rows(watch);
  note_start(watch);
  if (const double seconds = watch.run.step_seconds(); !std::isnan(seconds)) measured_[layout.layout] = seconds;
  lose_silent_hosts(watch);
  const bool was_started = !watch.holds.empty() || !std::isnan(watch.run.opened());
  EndOfRun end = end_of_run(watch.verdict, watch.code, watch.run.status(), wants_end_, was_started);
  keepers_.refresh();
  end.saved = saved_step(slots_.live_hosts(now()));
  if (end.how != Ended::complete && newest_saved_step(program_.save_dir(record_.folder())) >= program_.steps())
    end.how = Ended::complete;  // it died after its last checkpoint
  quarantine(watch);
  note_end(watch, end, ended);
  ended_at_ = ended;
  return end;
}

void Supervisor::tend(Watch& watch, int launcher) {
  take_rows(watch);
  note_start(watch);
  hear_guards(watch);
  judge_silence(watch);
  judge_lost_host(watch);
  tend_keepers();
  hear_user(watch);
  control_.serve([&](const std::string& text) {
    const std::string said = answer(text);
    if (is_resizing_) end_softly(watch);
    return said;
  });
  look_for_better_layout(watch);
  pass_on_the_request(watch, launcher);
  // A launcher can hang, as when it cannot reach a host. Its start has no guard yet, so only a long limit tells.
  const double limit = silent_starts * time_limit(60);
  const bool is_silent = watch.holds.empty() && std::isnan(watch.run.opened());  // without guards, there is still the record
  if (!watch.verdict && is_silent && now() - watch.run.began() > limit) {
    watch.verdict = Verdict{.kind = VerdictKind::hung, .doing = "start-up"};
    watch.verdict_at = now();
  }
  if (watch.verdict) hurry_up(watch, launcher, now());
}

void Supervisor::take_rows(Watch& watch) {
  StartedRun::News news = watch.run.read(now());
  if (!news.steps.empty()) watch.moved_at = now();
  for (train::TrainRow& row : news.steps) {
    row.time = now();
    record_.step(row);
    newest_step_ = std::max(newest_step_, row.step);
  }
  for (const train::EvalRow& row : news.evaluations) record_.evaluation(row);
}

// Slots that have left quarantine are used at once, if the remaining steps then take less time despite the restart.
void Supervisor::look_for_better_layout(Watch& watch) {
  constexpr double between_seconds = 1;
  const double seconds_here = watch.run.step_seconds();
  if (watch.verdict || watch.ends_at > 0 || std::isnan(seconds_here) || now() - watch.checked_at < between_seconds) return;
  watch.checked_at = now();
  if (slots_.live(now()) <= live_at_start_) return;
  const auto chosen = best();
  if (!chosen || chosen->layout.layout == running_->layout) return;
  const std::int64_t left = program_.steps() - watch.run.newest_step();
  const auto measured = measured_.find(chosen->layout.layout);
  const double seconds_there =
      measured != measured_.end() ? measured->second : scaled(seconds_here, *running_, chosen->layout);
  if (!pays(seconds_here, seconds_there, left, restart_seconds_)) return;
  log_.info("launch: {} slots are live, so the run goes on on {}", slots_.live(now()), chosen->layout.layout);
  is_resizing_ = true;
  end_softly(watch);
}

// ── events ────────────────────────────────────────────────────────────────────────────────────────────────────────────

// Completes the event of this start once its first step is done.
void Supervisor::note_start(const Watch& watch) {
  if (!has_event_ || std::isnan(watch.run.first_step())) return;
  event_.start_s = watch.run.opened() - watch.run.began();
  event_.load_s = watch.run.load_seconds();
  event_.source = watch.run.loaded_from_memory() ? "memory" : std::isnan(event_.load_s) ? "none" : "disk";
  event_.first_step_s = watch.run.first_step() - watch.run.began();
  event_.lost_steps = std::max<std::int64_t>(0, event_.step - (watch.run.first_number() - 1));  // what is really done again
  if (event_.kind != EventKind::started) restart_seconds_ = event_.end_s + event_.first_step_s;
  record_.event(event_);
  has_event_ = false;
}

void Supervisor::note_end(const Watch& watch, const EndOfRun& end, double ended) {
  if (has_event_) {  // this start did no step
    event_.start_s = (std::isnan(watch.run.opened()) ? ended : watch.run.opened()) - watch.run.began();
    record_.event(event_);
  }
  has_event_ = false;
  if (end.how == Ended::complete) return;
  const std::int64_t kept = std::max(end.saved, watch.run.first_number() - 1);
  const std::int64_t lost = watch.run.newest_step() < 0 ? 0 : std::max<std::int64_t>(0, watch.run.newest_step() - kept);
  event_ = {.t = watch.verdict       ? watch.verdict_at
                 : watch.ends_at > 0 ? watch.ends_at
                                     : ended,
            .step = newest_step_,
            .kind = is_resizing_ && end.how == Ended::stopped ? EventKind::resized : kind_of(watch.verdict, end),
            .host = watch.verdict ? watch.verdict->host : "",
            .rank = end.rank,
            .why = in_words(watch.verdict, end),
            .lost_steps = lost,
            .from_layout = running_->layout};
  if (watch.verdict) event_.detect_s = watch.verdict->silent_seconds;
  event_.end_s = std::max(0.0, ended - event_.t);
  has_event_ = true;
  const bool is_known = request_.hosts.empty();  // keepers on other hosts say twice a second what they hold
  const std::string saved =
      end.saved < 0 ? "no step is saved" : fmt::format("step {}{} is saved", end.saved, is_known ? "" : " or a later one");
  log_.info("launch: {}; {}{}", event_.why, saved,
            lost > 0 && is_known ? fmt::format(", {} step{} lost", lost, lost == 1 ? " is" : "s are") : "");
}

int Supervisor::finish(EventKind kind, const std::string& status, int code, const std::string& why) {
  if (has_event_) record_.event(event_);
  record_.event(
      {.t = now(), .step = newest_step_, .kind = kind, .why = why, .from_layout = running_ ? running_->layout : ""});
  record_.finish(status);
  log_.result("recorded in {}", (record_.folder() / "run.h5").string());
  return code;
}

int Supervisor::run() {
  event_ = {.kind = EventKind::started, .why = "the launch began"};
  has_event_ = true;
  for (bool first = true;; first = false) {
    const auto chosen = wait_for_layout();
    if (!chosen) return finish(EventKind::stopped, "stopped", 0, "the launch was asked to end");
    if (first) {
      record_.describe(chosen->layout.layout, chosen->layout.ranks, program_.steps(),
                       program_.config_on(chosen->layout.layout));
      log_.result("launch: {} slots; records and checkpoints in {}", slots_.size(), record_.folder().string());
    } else {
      event_.choose_s = now() - ended_at_;
    }
    const EndOfRun end = start(*chosen);
    if (end.how == Ended::complete) return finish(EventKind::complete, "ok", 0, "all steps are done");
    if (end.how == Ended::stopped && std::exchange(is_resizing_, false) && !wants_end_) continue;
    if (end.how == Ended::stopped || wants_end_)
      return finish(EventKind::stopped, "stopped", 0, "the launch was asked to end");
    is_resizing_ = false;
    const NextStart next = restarts_.after(end);
    if (!next.comes) {
      finish(EventKind::gave_up, "failed", next.exit_code, next.why);
      const std::filesystem::path saved = program_.save_dir(record_.folder());
      throw Error(static_cast<Exit>(next.exit_code), "the launch gives up", next.why,
                  fmt::format("{} report {} --group events lists what happened; {}", program(), record_.folder().string(),
                              newest_saved_step(saved) >= 0 ? fmt::format("continue with --load {}", saved.string())
                                                            : "no checkpoint was saved"));
    }
    for (const double until = now() + next.wait_seconds; now() < until && !wants_end_; session_.clock.sleep(0.02)) {
      hear_user_between_starts();
      tend_keepers();
    }
  }
}

}  // namespace chorale::launch
