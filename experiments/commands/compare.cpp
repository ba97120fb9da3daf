// `chorale compare` runs several configurations in one launch. The configurations run one after the other, in a new random
// order for each repetition, so that other load on the machine affects all configurations. At the end, compare prints a
// table and writes one record with all runs.
//
//   mpirun -np 4 build/chorale compare strategies                                    a suite that comes with the program
//   mpirun -np 4 build/chorale compare mine.toml                                     a suite: a file that lists the runs
//   mpirun -np 4 build/chorale compare --preset nano --layouts dp4,tp4 --lr 1e-3     without a file: by options of train
//   mpirun -np 4 build/chorale compare --resume runs/latest                          the remaining runs after a stop
//
//   runs/<id>/   suite.toml   run.h5: /summary and every run below /runs   dp4-r1/  tp4-r1/ …: one folder per run
//
// If a run needs fewer ranks than were launched, it uses the first ones, and the other ranks sleep. If a run cannot start,
// for example because of too little memory, its row says why. If a run fails, some ranks can still be inside a collective.
// The failed run therefore ends the launch, and writes failure.txt to its folder. --resume converts this file to a row, and
// continues with the other runs.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "experiments/common/advice.hpp"
#include "experiments/common/each.hpp"
#include "experiments/common/machine_watch.hpp"
#include "experiments/common/run_record.hpp"
#include "experiments/common/shared_files.hpp"
#include "experiments/compare/answer.hpp"
#include "experiments/compare/earlier.hpp"
#include "experiments/compare/fill_memory.hpp"
#include "experiments/compare/layouts.hpp"
#include "experiments/compare/outside.hpp"
#include "experiments/compare/pace.hpp"
#include "experiments/compare/prepared.hpp"
#include "experiments/compare/rounds.hpp"
#include "experiments/compare/summary.hpp"
#include "experiments/train/flags.hpp"
#include "experiments/train/megatron_flags.hpp"
#include "src/base/error.hpp"
#include "src/base/progress.hpp"
#include "src/base/settings.hpp"
#include "src/base/signals.hpp"
#include "src/base/text.hpp"
#include "src/record/run_folder.hpp"

namespace chorale {
namespace {

namespace fs = std::filesystem;
using namespace compare;

// The options that a resumed comparison copies from the comparison that was stopped.
constexpr std::string_view kept_by_resume[] = {"repetitions", "budget", "warm-up", "seed", "metric", "fill-memory"};

class Compare final : public Command {
 public:
  std::vector<Preset> presets() const override { return train::presets(); }

  void declare(Options& o) override {
    options_ = &o;
    o.add_positional("suite", files_,
                     "the runs to compare: a file of your own, or one that comes with the program, by its name: " +
                         join(shared_names("suites"), ", ") + ". docs/experiments.md says how to write one")
        .suggest(shared_names("suites"));
    o.add("layouts", layouts_,
          "instead of a suite: train on each of these layouts, as dp4,tp4,dp2.pp2; all: those that `chorale plan "
          "--layout all` lists. Takes the options of train, except --layout, for all runs");
    o.add("resume", resume_, "continue a stopped comparison").words("DIR");
    o.add("run-dir", run_dir_, "create the folder of the comparison in this folder").words("DIR").changes(Effect::output);
    o.add("repetitions", repetitions_,
          "repetitions of every run; 0: as the suite says; fewer than six cannot tell the fastest")
        .range(0, 1000);
    o.add_seconds("budget", budget_,
                  "start no repetition, or no seed, that would end after this time; the first always completes, and may "
                  "take longer; 0: no limit");
    o.add("warm-up", warm_up_, "first steps of each run to exclude from speeds; they are recorded; -1: as the suite says")
        .range(-1, 1e6);
    report::add_metric(o, metric_);
    o.add_bytes(
         "fill-memory", fill_memory_,
         "give each training run the largest micro-batch with which no rank holds more than this; 0: as the suite says")
        .range(0, 1e15);
    o.add("seed", seed_, "seed for the order of the runs, and with --layouts for training too").range(0, 1e18);
    Options theirs("chorale train");
    const auto train = find_command("train").make();
    train->declare(theirs);
    o.pass_on(theirs, {"layout"});
    o.add_words(train::megatron_flags());
  }

  void check(const Launch& launch) override {
    if (files_.size() + !resume_.empty() + !layouts_.empty() != 1)
      usage_error("compare needs one of these: a suite, --layouts or --resume",
                  fmt::format("{} files were given{}{}", files_.size(), layouts_.empty() ? "" : ", and --layouts",
                              resume_.empty() ? "" : ", and --resume"),
                  are_layouts(files_) ? fmt::format("did you mean --layouts {}?", join(files_, ","))
                                      : program() + " compare strategies, or --layouts dp4,tp4, or --resume runs/latest");
    if (layouts_.empty()) require_nothing_to_pass_on();
    if (resume_.empty())
      require_writable(run_dir_);
    else
      take_up(launch);
    std::vector<Mistake> mistakes;
    suite_ =
        layouts_.empty()
            ? read_suite(resume_.empty() ? shared_or_own(files_[0], "suites", "suite") : fs::path(resume_) / "suite.toml",
                         mistakes)
            : parse_suite("--layouts", suite_of_layouts(layouts_, passed_on(), run_dir_, fill_memory_, launch), mistakes);
    if (repetitions_ > 0) suite_.repetitions = repetitions_;
    if (warm_up_ >= 0) suite_.warm_up = warm_up_;
    if (metric_ != report::by_settings) suite_.metric = metric_;
    if (fill_memory_ > 0) suite_.fill_memory = fill_memory_;
    fill_memory(suite_, run_dir_, launch, mistakes);
    const std::size_t half_checked = check_runs(suite_, run_dir_, launch, mistakes);
    if (!layouts_.empty()) refuse_once(mistakes);
    refuse_mistakes(suite_, std::move(mistakes), half_checked);
    values_ = varied_values(suite_, launch);
    signals_.emplace();
  }

  int run(Session& session) override {
    signals_->tell(session.runtime->flight());
    const mpi::Runtime& runtime = *session.runtime;
    const bool speaks = runtime.rank() == 0;
    const auto ranks = gather_rank_facts(runtime, session.clock);
    for (const RankFacts& rank : ranks)
      if (rank.kernel == ranks[0].kernel) cpus_.insert(cpus_.end(), rank.cpus.begin(), rank.cpus.end());
    RunRecord record = resume_.empty() ? open_run_record(run_dir_, session, ranks) : go_on(session, ranks);
    if (speaks && resume_.empty()) write_file(record.folder / "suite.toml", suite_.text);

    require_same_suite(runtime);
    const std::vector<Repetition> turns = in_rounds(suite_, runtime.size(), seed_);
    const auto values = each(
        turns, [&](const Repetition& turn) { return values_[static_cast<std::size_t>(turn.run - suite_.runs.data())]; });
    std::optional<SuiteSummary> summary;
    std::string left;  // one character per turn (a repetition of a run): 'x' if the turn must run, '.' if it is done
    if (speaks) {
      record.recorder->text("config", "suite", suite_.text);
      record.recorder->text("config", "question", suite_.question);
      summary.emplace(*record.recorder, suite_, turns, values);
      left = take_finished(record.folder, turns, *summary);
    }
    left = mpi::broadcast(runtime.world(), left);
    std::optional<MachineWatch> watch;  // simulated times do not depend on other programs
    if (!std::ranges::all_of(suite_.runs, &SuiteRun::simulated)) {
      watch.emplace(session);
      watch->warn(record.log);
    }
    const Exit exit = go_through(session, record, turns, left, summary);
    const std::vector<OtherWork> others = watch ? watch->finish(record.log) : std::vector<OtherWork>{};
    if (speaks) write_other_work(*record.recorder, others);
    if (speaks) finish(record, suite_, *summary, {runtime.size(), exit == Exit::runtime, rounds_, no_time_from_, budget_});
    return static_cast<int>(exit);
  }

 private:
  // The runs of --layouts have the same settings, so a mistake in a shared setting is reported only once.
  static void refuse_once(const std::vector<Mistake>& mistakes) {
    std::vector<std::string> lines;
    for (const Mistake& mistake : mistakes)
      if (!std::ranges::count(lines, mistake.text)) lines.push_back(mistake.text);
    if (lines.empty()) return;
    lines.emplace_back(lines.size() > 1 ? "change the options named above" : "change the option named above");
    throw Error(Exit::usage, "nothing was run", lines);
  }

  static bool are_layouts(const std::vector<std::string>& words) {
    try {
      for (const std::string& word : words) parse_layout(word, 0);
      return !words.empty();
    } catch (const Error&) {
      return false;
    }
  }

  std::vector<Setting> passed_on() const {
    std::vector<Setting> given = options_->given_to_pass_on();
    if (const Option* seed = options_->find("seed"); seed->source != Source::other)
      given.push_back({seed->name, seed->text, seed->origin, seed->source});
    return given;
  }

  // Refuses options of train unless --layouts is given. Environment variables are not refused, because they can be meant for
  // a different command.
  void require_nothing_to_pass_on() const {
    for (const Setting& setting : options_->given_to_pass_on())
      if (setting.source != Source::environment)
        usage_error(fmt::format("{} is an option of the runs, not of compare", setting.key),
                    fmt::format("{} = {} ({})", setting.key, setting.text, setting.origin),
                    "write it into the suite, under [[runs]], or use --layouts dp4,tp4 instead of a suite");
  }

  // Prepares the comparison that --resume continues. This launch must have as many ranks as the earlier launch. Options in
  // `kept_by_resume` that are not given keep their earlier values.
  void take_up(const Launch& launch) {
    resume_ = fs::weakly_canonical(resume_).string();  // runs/latest can point to a different run later
    const fs::path folder = resume_;
    require_can_go_on(folder, launch);
    for (const Setting& setting : read_config(folder / "config.toml"))
      if (std::ranges::count(kept_by_resume, setting.key) && options_->origin(setting.key) == "default")
        options_->set(setting);
  }

  // Every rank reads the suite's file, and on a network file system, ranks can see different versions of the file.
  void require_same_suite(const mpi::Runtime& runtime) const {
    const auto others = mpi::ranks_where(runtime.world(), mpi::broadcast(runtime.world(), suite_.text) != suite_.text);
    if (others.empty()) return;
    if (runtime.rank() == 0)
      usage_error("ranks read different suites", fmt::format("rank {} read a different text than rank 0", others[0]),
                  "wait until all hosts see the same file");
    SystemClock clock;
    mpi::sleep_until_all(runtime.world(), clock);  // rank 0 then ends all ranks
  }

  RunRecord go_on(const Session& session, const std::vector<RankFacts>& ranks) const {
    const bool speaks = session.runtime->rank() == 0;
    return {resume_, Log({.rank = session.runtime->rank(), .level = session.log_level, .folder = fs::path(resume_) / "log"}),
            speaks ? open_record(resume_, session, ranks, true) : nullptr};
  }

  // Runs the turns. Returns Exit::runtime if a signal stopped the comparison, and Exit::check if a check in a run failed.
  Exit go_through(Session& session, RunRecord& record, const std::vector<Repetition>& turns, const std::string& left,
                  std::optional<SuiteSummary>& summary) {
    const mpi::Runtime& runtime = *session.runtime;
    const auto all = std::count(left.begin(), left.end(), 'x');
    std::int64_t done = 0;
    bool checks = true;
    rounds_ = turns.back().round;
    std::vector<std::int64_t> of_round(static_cast<std::size_t>(rounds_));
    for (std::size_t t = 0; t < turns.size(); ++t) of_round[static_cast<std::size_t>(turns[t].round - 1)] += left[t] == 'x';
    Pace pace(budget_, of_round, session.clock);
    std::optional<Progress> progress;
    if (summary && all > 0) progress.emplace("compare", all, session.clock, Progress::screen_at(session.log_level));
    for (std::size_t t = 0; t < turns.size(); ++t) {
      if (left[t] != 'x') continue;
      const std::string goes_on = pace.may_begin(turns[t].round) ? "yes" : "";
      if (mpi::broadcast(runtime.world(), goes_on).empty()) {  // the clock of rank 0 decides
        no_time_from_ = turns[t].round;
        return checks ? Exit::ok : Exit::check;
      }
      if (progress) {
        progress->expect(pace.expected(done));
        progress->update(done, turns[t].id());
        warn_of_overrun(record, pace.overrun(done++));
      }
      const Outcome outcome = run_one(session, record, turns[t]);
      if (!outcome.trouble.empty()) record.log.warn("{}: {}", turns[t].id(), outcome.trouble);
      mpi::sleep_until_all(runtime.world(), session.clock);  // idle ranks leave their cores to the other ranks
      const fs::path file = record.folder / turns[t].id() / "run.h5";
      // A command that handles a signal consumes it. After that, only the command's record says that the run was stopped.
      const bool stopped =
          outcome.stopped || signals_->pending() || (summary && outcome.trouble.empty() && status_of(file) == "stopped");
      const bool stops = !mpi::ranks_where(runtime.world(), stopped).empty();
      checks &= mpi::ranks_where(runtime.world(), outcome.exit == Exit::check).empty();
      if (summary) {
        if (outcome.trouble.empty() && status_of(file) == "ok")
          summary->finished(t, file);
        else if (!outcome.trouble.empty())
          summary->failed(t, outcome.trouble);
        summary->keep();
      }
      if (stops) return Exit::runtime;
    }
    if (progress) progress->finish();
    return checks ? Exit::ok : Exit::check;
  }

  void warn_of_overrun(RunRecord& record, double seconds) {
    if (seconds == 0 || std::exchange(warned_of_overrun_, true)) return;
    record.log.warn(
        "the first {} will take about {}, the budget is {}; it completes all the same, because every run "
        "runs at least once",
        name_of_round(suite_), human_seconds(seconds), human_seconds(budget_));
  }

  struct Outcome {
    Exit exit = Exit::ok;
    std::string trouble;  // why this repetition has no result; "" if it has one
    bool stopped = false;
  };

  // Rank 0 runs the program, and forwards the signals that it receives. The other ranks sleep until the program ends.
  Outcome run_program(Session& session, RunRecord& record, const Repetition& turn) {
    if (session.runtime->rank() != 0) return {};
    Outcome outcome;
    outcome.trouble = run_outside(turn, suite_.pattern, record.folder, cpus_, session.clock, [&](int pid) {
      if (Flight* const flight = session.runtime->flight()) flight->heartbeat();
      if (const auto signal = signals_->pending()) {
        outcome.stopped = true;
        kill(-pid, *signal);
      }
    });
    if (outcome.stopped) return {.stopped = true};
    if (outcome.trouble.empty()) return {};
    leave_failure(record.folder / turn.id(), outcome.trouble);
    return {Exit::check, outcome.trouble};
  }

  // Called on every rank, because splitting off the run's communicator is collective.
  Outcome run_one(Session& session, RunRecord& record, const Repetition& turn) {
    if (turn.run->outside) return run_program(session, record, turn);
    const mpi::Runtime part(*session.runtime, session.runtime->rank() < turn.ranks ? 0 : -1);
    if (part.rank() < 0) return {};
    try {
      const Prepared run =
          prepare(*turn.run, record.folder, turn.id(), {.launcher = "compare", .rank = part.rank(), .size = turn.ranks});
      const std::string words = join({program(), turn.run->command, join(run->options.words(), " ")}, " ");
      Session inner{run->options, words, "warn", session.clock, &part, turn.id()};
      const auto code = static_cast<Exit>(run->command->run(inner));
      if (code == Exit::check) return {code, "its own checks failed: see its log"};
      return {code, code == Exit::ok ? "" : fmt::format("exit code {}", static_cast<int>(code))};
    } catch (const Error& error) {
      if (error.exit() != Exit::usage) {
        leave_failure(record.folder / turn.id(), error.what());
        record.log.error("{} failed; to run the others: {}", turn.id(), resume_command(session.runtime->size(), record));
        throw;
      }
      return {Exit::usage, split(error.what(), '\n')[0]};
    }
  }

  Options* options_ = nullptr;
  std::vector<std::string> files_, layouts_;
  std::string resume_, run_dir_ = "runs", metric_ = report::by_settings;
  std::int64_t repetitions_ = 0, warm_up_ = -1, seed_ = 1;
  std::int64_t fill_memory_ = 0;
  double budget_ = 0;
  bool warned_of_overrun_ = false;
  std::int64_t rounds_ = 0, no_time_from_ = 0;  // no_time_from_: the first round that the budget excludes; 0 if all fit
  std::vector<int> cpus_;                       // on rank 0: the CPUs of all ranks on its host
  Suite suite_;
  std::vector<std::vector<std::string>> values_;  // [r][v]: the value of the v-th varied setting in run r
  std::optional<Signals> signals_;
};

}  // namespace

std::unique_ptr<Command> make_compare() { return std::make_unique<Compare>(); }

}  // namespace chorale
