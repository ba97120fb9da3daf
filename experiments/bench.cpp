// `chorale bench OPS` times collectives on any backends and algorithms, over sizes, types, operators and roots, in place and
// out of place. It checks every element of the results. Exit 3: an element was wrong. Exit 2: no requested combination can
// run.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "collectives/algorithms.hpp"
#include "collectives/backends/backends.hpp"
#include "collectives/selection.hpp"
#include "experiments/advice.hpp"
#include "experiments/bench/forecast_errors.hpp"
#include "experiments/bench/launches.hpp"
#include "experiments/bench/options.hpp"
#include "experiments/bench/results.hpp"
#include "experiments/bench/sweep.hpp"
#include "experiments/bench/tables.hpp"
#include "experiments/machine_watch.hpp"
#include "experiments/run_record.hpp"
#include "experiments/simulated.hpp"
#include "experiments/train/device.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"
#include "src/record/run_folder.hpp"
#include "src/record/scratch_folder.hpp"

namespace chorale {
namespace {

namespace fs = std::filesystem;
using namespace bench;

class BenchCommand final : public Command {
 public:
  void declare(Options& options) override {
    asked_.take_simulated();
    asked_.declare(options);
    device_.declare(options);
    launches_.declare(options);
    options.add("check", check_, "whether results are checked, element by element");
    options.add("compare-calls", compare_calls_, "whether ranks check that all make the same call, as a training run does");
    options.add("ceiling", ceiling_, "whether to measure the memory ceiling, where memory is mapped");
    options.add("format", format_, "output format").one_of(TextTable::formats());
    options
        .add("out", out_,
             "write every sample of every rank to this new record; with --format csv, a folder gets the tables instead, one "
             "file for each operation")
        .words("FILE.h5|DIR");
  }

  void check(const Launch& launch) override {
    asked_.check();
    device_.check();
    launches_.check(launch, record_file());
    if (std::ranges::any_of(asked_.backends, is_simulated) && (launches_.wanted() || device_.asked()))
      usage_error("a simulated benchmark runs on one process, without data", "--launches or --device is given",
                  "leave them out, or name other backends");
    if (out_.empty()) return;
    if (gets_tables()) return require_new_tables();
    if (std::ranges::count_if(asked_.backends, is_simulated) > 1)
      usage_error("a record holds one simulated machine", "--backend " + join(asked_.backends, ","),
                  "write a record for each machine");
    if (fs::exists(out_))
      usage_error("the record exists already", out_, "nothing is overwritten: name another file, or remove this one");
    require_writable_file(out_, "--out");
  }

  bool starts_ranks() const override { return launches_.wanted(); }

  int run(Session& session) override {
    if (launches_.wanted()) return run_launches(session);
    const mpi::Runtime& runtime = *session.runtime;
    const bool speaks = runtime.rank() == 0;
    const auto ranks = gather_rank_facts(runtime, session.clock);
    Sweep sweep = asked_.sweep(runtime, device_.asked());
    device_.open(runtime);
    sweep.how.device = device_.memory();
    sweep.how.check = check_;
    sweep.how.ceiling = ceiling_;
    sweep.how.compare_calls = compare_calls_;
    const Outcome outcome = bench::run(sweep, session);
    if (outcome.rows == 0) {
      if (speaks) std::fputs(describe(nothing_measured(outcome, runtime.size()), 0, 1).c_str(), stderr);
      return static_cast<int>(Exit::usage);
    }
    std::int64_t wrong = 0;
    if (speaks) wrong = report(outcome, session, ranks);
    ProcessTeam team(runtime);
    return static_cast<int>(team.broadcast(static_cast<double>(wrong)) > 0 ? Exit::check : Exit::ok);
  }

 private:
  bool gets_tables() const { return format_ == "csv" && !out_.empty() && !out_.ends_with(".h5"); }
  std::string record_file() const { return gets_tables() ? "" : out_; }

  void require_new_tables() const {
    require_writable(out_, "--out");
    for (const char* name : collective_names)
      if (const fs::path file = table_file(out_, name); fs::exists(file))
        usage_error("the folder has a table already", file.string(),
                    "nothing is overwritten: name another folder, or remove this file");
  }

  // On stdout, or into the files of --out.
  void show(const Rows& rows) const {
    if (!gets_tables()) return fmt::print("{}", bench::print(rows, format_, screen_columns()));
    for (const fs::path& file : write_tables(rows, out_)) fmt::print("{}\n", file.string());
  }

  fs::path folder_of_out() const { return fs::absolute(out_).parent_path(); }

  int run_launches(Session& session) {
    const Rows rows = launches_.run(session, record_file());
    if (format_ == "text") {
      fmt::print("# {}; 1 GB is 10⁹ bytes\n", launches_.about());
      say_limits(rows, rows.empty() ? 1 : rows[0]["ranks"].get<std::int64_t>());
    }
    show(rows);
    return tell_wrong(wrong_in(rows));
  }

  // Prints notes below the table: prices were not measured here, how good predictions were, or one rank has no bandwidth.
  void say_limits(const Rows& rows, std::int64_t processes) const {
    std::set<std::string> unmeasured;
    for (const auto& row : rows)
      if (!row["predicted_seconds"].is_null() && row["calibrated"] == 0) unmeasured.insert(row["backend"]);
    const std::vector<std::string> names(unmeasured.begin(), unmeasured.end());
    if (!names.empty() && shows_predictions(rows))
      fmt::print("# predicted: {}, by the typical prices of {}; to measure them here: {}\n", not_calibrated,
                 join(names, ", "), command_on(processes, "tune --calibrate --backend " + join(names, ",")));
    fmt::print("{}", forecast_errors(rows));
    if (std::ranges::any_of(rows, [](const auto& row) { return row["ranks"] == 1; }))
      fmt::print(
          "# busbw is 0: it counts the bytes that cross a link between two ranks, and one rank sends nothing.\n"
          "# So it has no algbw and no ceiling either; to use two ranks: {}\n",
          command_on(2, "bench …"));
  }

  static int tell_wrong(std::int64_t elements) {
    if (elements > 0) std::fputs(fmt::format("{} elements are wrong\n", elements).c_str(), stderr);
    return static_cast<int>(elements > 0 ? Exit::check : Exit::ok);
  }

  // On rank 0. Returns how many elements were wrong.
  std::int64_t report(const Outcome& outcome, const Session& session, const std::vector<RankFacts>& ranks) const {
    const Where memory = device_.memory() ? Where::device : asked_.heap() ? Where::heap : Where::symmetric;
    const Conditions conditions{asked_.cold(), memory};
    const bool crowded = std::any_of(ranks.begin(), ranks.end(), [](const RankFacts& rank) { return rank.oversubscribed; });
    const auto cores = static_cast<int>(allowed_cpus().size());
    const Selector selector(asked_.tuning(), asked_.machine());
    std::vector<Result> results;
    Rows rows;
    std::int64_t wrong = 0;
    for (const Series& series : outcome.series) {
      results.push_back(explained(series, selector));
      if (!is_simulated(series.row.backend))
        results.back().oversubscribed =
            backend_named(series.row.backend).ranks_are_threads ? series.row.ranks > cores : crowded;
      rows.push_back(bench::describe(results.back(), conditions));
      wrong += std::max<std::int64_t>(series.wrong, 0);
    }
    const bool any_checked = std::ranges::any_of(rows, [](const auto& row) { return !row["wrong"].is_null(); });
    if (session.run_name.empty() && format_ == "text") {
      if (outcome.simulated())
        fmt::print(
            "# virtual time on one process; 1 GB is 10⁹ bytes\n"
            "# predicted, for rings: the closed form by which a plan times them\n");
      else
        fmt::print(
            "# {} buffers in {} memory; 1 GB is 10⁹ bytes{}\n"
            "# time: the slowest rank's, median of the repetitions; ±: half its 95 % interval\n{}",
            conditions.cold ? "cold" : "warm", where_names[static_cast<std::size_t>(memory)],
            crowded ? "; more ranks than cores" : "",
            wrong > 0     ? ""
            : any_checked ? "# results were checked: every element is right\n"
                          : "# results were not checked\n");
      say_limits(rows, static_cast<std::int64_t>(ranks.size()));
    }
    if (session.run_name.empty()) show(rows);
    tell_wrong(wrong);
    if (!record_file().empty()) keep(results, conditions, session, ranks, outcome.others, wrong == 0 ? "ok" : "failed");
    return wrong;
  }

  static Result explained(const Series& series, const Selector& selector) {
    const Case& row = series.row;
    Result result{series};
    if (is_simulated(row.backend)) {
      result.predicted = series.closed_form, result.calibrated = true;
      result.bytes_predicted = static_cast<std::int64_t>(series.bytes_sent);
      return result;
    }
    if (row.ranks > most_ranks_explained) return result;
    result.predicted =
        selector.predict(row.backend, series.choice.algorithm, series.choice.chunks, row.problem(), row.dtype);
    result.calibrated = selector.is_calibrated(row.backend, row.problem());
    result.usual_beat = selector.usual_beat(row.backend, row.problem());
    if (const Algorithm* algorithm = find_algorithm(row.what, series.choice.algorithm)) {
      result.bytes_predicted = 0;
      for (const Schedule& schedule : plan_all_ranks(*algorithm, row.problem()))
        result.bytes_predicted += schedule.elements_sent() * size_of(row.dtype);
    }
    return result;
  }

  void keep(const std::vector<Result>& results, const Conditions& conditions, const Session& session,
            const std::vector<RankFacts>& ranks, const std::vector<OtherWork>& others, const std::string& status) const {
    const ScratchFolder scratch(folder_of_out());
    const auto recorder = open_record(scratch.path(), session, ranks);
    for (const std::string& name : asked_.backends)
      if (is_simulated(name)) {
        recorder->text("/", "simulated_on", simulated_machine(name));
        recorder->number("jobsize", results.empty() ? 1 : results[0].series.row.ranks);
      }
    bench::write(*recorder, results, conditions);
    write_other_work(*recorder, others);
    recorder->finish(status);
    fs::rename(fs::canonical(recorder->file()), out_);
  }

  static constexpr int most_ranks_explained = 64;  // the cost of pricing grows with the square of the ranks
  Asked asked_;
  train::ComputeDevice device_;
  Launches launches_;
  bool check_ = true, compare_calls_ = true, ceiling_ = true;
  std::string format_ = "text", out_;
};

}  // namespace

std::unique_ptr<Command> make_bench() { return std::make_unique<BenchCommand>(); }

}  // namespace chorale
