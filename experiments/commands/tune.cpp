// `chorale tune` times every algorithm over sizes on the requested backends. For each size it writes the fastest algorithm
// to the tuning table that `auto` uses. If the lead of the fastest algorithm can be noise, tune writes the usual algorithm
// instead (bench/winner.hpp). Each choice is printed with its reason. Entries of the table for other numbers of ranks or
// hosts, other backends and other operations are kept. If a signal stops tune, only the choices with complete measurements
// are written.
//
// With --calibrate, tune measures prices instead, and writes them to the machine file (bench/calibration.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "collectives/backends/backends.hpp"
#include "experiments/bench/calibration.hpp"
#include "experiments/bench/options.hpp"
#include "experiments/bench/winner.hpp"
#include "experiments/common/advice.hpp"
#include "experiments/common/stopped.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/signals.hpp"
#include "src/base/text.hpp"
#include "src/record/run_folder.hpp"

namespace chorale {
namespace {

using namespace bench;

class Tune final : public Command {
 public:
  Tune() {
    asked_.wanted.ops = asked_.wanted.algorithms = {"all"};
    asked_.wanted.end = 16 << 20;
    asked_.wanted.factor = 16;
  }

  void declare(Options& options) override {
    asked_.declare(options);
    dtype_ = options.find("dtype");
    begin_ = options.find("begin");
    end_ = options.find("end");
    factor_ = options.find("factor");
    options.add("calibrate", calibrate_,
                "measure the prices of communication, and the rates of sums and matrix products, and write them to the "
                "machine file; unless given, --begin is 1K, --factor 5 and, on several hosts, --end 4M");
  }

  void check(const Launch& launch) override {
    asked_.check(calibrate_ ? Asked::Writes::machine : Asked::Writes::tuning);
    const auto joins_threads = [](const std::string& name) {
      return name != "auto" && backend_named(name).ranks_are_threads;
    };
    if (calibrate_ && launch.size == 1 && !std::ranges::any_of(asked_.backends, joins_threads))
      usage_error("one rank sends nothing, so its calls have no price", "1 rank",
                  fmt::format("start two or more: {}", command_on(2, "tune --calibrate")));
    if (asked_.tuning_file().empty())
      usage_error("there is no folder for the tuning table", "neither XDG_CACHE_HOME nor HOME is set",
                  "name one with --tuning FILE");
    if (calibrate_ && asked_.machine_file().empty())
      usage_error("there is no folder for the machine file", "neither XDG_CACHE_HOME nor HOME is set",
                  "name one with --machine FILE");
    require_writable_file(calibrate_ ? asked_.machine_file() : asked_.tuning_file(), calibrate_ ? "--machine" : "--tuning");
    if (calibrate_) choose_sizes(launch);
    signals_.emplace();
  }

  int run(Session& session) override {
    signals_->tell(session.runtime->flight());
    Sweep sweep = asked_.sweep(*session.runtime);
    sweep.how.ceiling = false;
    sweep.how.told_to_stop = [this] { return signals_->pending().has_value(); };
    if (calibrate_) return run_calibration(sweep, session);
    sweep.together = true;
    const Outcome outcome = bench::run(sweep, session);
    if (session.runtime->rank() == 0) {
      if (!outcome.series.empty()) write(outcome);
      if (outcome.stopped) say_stopped(outcome);
      if (outcome.rows == 0) std::fputs(describe(nothing_measured(outcome, session.runtime->size()), 0, 1).c_str(), stderr);
    }
    return static_cast<int>(outcome.stopped ? Exit::runtime : outcome.rows > 0 ? Exit::ok : Exit::usage);
  }

 private:
  using Question = decltype(BenchCase().question());

  void write(const Outcome& outcome) const {
    const std::vector<Series>& all = outcome.series;
    std::map<Question, std::vector<const Series*>> answers;
    for (const Series& series : all) {
      const BenchCase& row = series.row;
      if (series.wrong > 0) continue;  // series with wrong results are ignored
      answers[row.question()].push_back(&series);
    }
    TuningTable table = known();
    std::erase_if(table.choices, [&](const Tuned& t) {
      return std::any_of(all.begin(), all.end(), [&](const Series& series) {
        const BenchCase& row = series.row;
        const bool same_size = row.in_place == t.in_place && row.bytes() == t.bytes;
        return row.backend == t.backend && row.what == t.what && row.ranks == t.ranks && (same_size || !outcome.stopped) &&
               number_of_hosts(row.hosts) == t.hosts;
      });
    });
    const Selector without_table({}, asked_.machine());
    for (const auto& [question, measured] : answers) {
      const BenchCase& row = measured[0]->row;
      const Choice usual = without_table.choose(row.backend, row.problem(), row.bytes(), false);
      table.choices.push_back(winner_of(measured, usual));
      const Tuned& t = table.choices.back();
      fmt::print("{:<8}{:<15} {} ranks{}{}, {}: {}{}, {}\n", t.backend, name_of(t.what), t.ranks,
                 t.hosts > 1 ? fmt::format(" on {} hosts", t.hosts) : "", t.in_place ? ", in place" : "",
                 human_bytes(t.bytes), t.algorithm, t.chunks > 1 ? fmt::format(" in {} chunks", t.chunks) : "", t.why());
    }
    const std::string caution = outcome.busy.empty() ? "" : fmt::format(", measured on a busy machine: {}", outcome.busy);
    write_tuning(asked_.tuning_file(), table);
    fmt::print("written to {}{}\n", escape_control(asked_.tuning_file()), caution);
    if (!caution.empty())
      fmt::print("a rank that waited for a core can be thousands of times slower: run tune again on a quiet machine\n");
    std::fflush(stdout);
  }

  // Lists the choices that were measured before the stop.
  void say_stopped(const Outcome& outcome) const {
    std::map<std::pair<std::string, std::string>, std::set<std::int64_t>> sizes;
    for (const Series& series : outcome.series)
      sizes[{series.row.backend, fmt::format("{}{}", name_of(series.row.what), series.row.in_place ? " in place" : "")}]
          .insert(series.row.bytes());
    std::vector<std::string> measured;
    for (const auto& [kind, all] : sizes) {
      std::vector<std::string> words;
      for (const std::int64_t bytes : all) words.push_back(human_bytes(bytes));
      measured.push_back(fmt::format("{} on {} at {}", kind.second, kind.first, join(words, ", ")));
    }
    const std::string numbers = fmt::format("{} of {} rows were measured", outcome.series.size(), outcome.rows);
    chorale::say_stopped(numbers + ": " + (measured.empty() ? "no choice is complete" : join(measured, "; ")),
                         measured.empty() ? "the table stays as it was: start it again"
                                          : "this run changed only these sizes in the table: start it again to measure all");
  }

  // The existing table; empty if it was not measured on this machine.
  TuningTable known() const {
    const std::string file = asked_.tuning_file();
    TuningTable table;
    if (std::filesystem::exists(file)) table = read_tuning(file);
    if (table.machine != machine_signature()) table = {machine_signature(), {}};
    return table;
  }

  void choose_sizes(const Launch& launch) {
    if (asked_.wanted.dtypes != std::vector<std::string>{"f32"})
      usage_error("prices are fitted to calls with f32", fmt::format("dtype = {} ({})", dtype_->text, dtype_->origin),
                  "leave it out: how fast cores add other types is measured too");
    if (begin_->source == Source::other) asked_.wanted.begin = 1 << 10;
    if (factor_->source == Source::other) asked_.wanted.factor = 5;
    if (end_->source == Source::other && !launch.one_host())
      asked_.wanted.end = 4 << 20;  // enough, because longer vectors do not lower a link's cost per byte
  }

  int run_calibration(Sweep& sweep, const Session& session) {
    sweep.how.check = false;
    const bool complete = calibrate(sweep, session, asked_.machine_file());
    if (!complete && session.runtime->rank() == 0)
      chorale::say_stopped("the measurements are not complete", "the machine file stays as it was: start it again");
    return static_cast<int>(complete ? Exit::ok : Exit::runtime);
  }

  Asked asked_;
  bool calibrate_ = false;
  const Option *dtype_ = nullptr, *begin_ = nullptr, *end_ = nullptr, *factor_ = nullptr;
  std::optional<Signals> signals_;
};

}  // namespace

std::unique_ptr<Command> make_tune() { return std::make_unique<Tune>(); }

}  // namespace chorale
