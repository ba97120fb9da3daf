// `chorale bench OPS` times collectives for each requested combination of backend, algorithm, size, type, operator and root,
// in place and out of place. The command checks every element of the results in the checked calls (bench/measure.hpp). The
// exit code is 3 if an element was wrong, and 2 if no requested combination can run. After SIGINT or SIGTERM, the complete
// rows are printed and recorded.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "collectives/choice/selection.hpp"
#include "experiments/bench/launches.hpp"
#include "experiments/bench/notes.hpp"
#include "experiments/bench/options.hpp"
#include "experiments/bench/results.hpp"
#include "experiments/bench/sweep.hpp"
#include "experiments/bench/tables.hpp"
#include "experiments/common/machine_watch.hpp"
#include "experiments/common/run_record.hpp"
#include "experiments/common/simulated.hpp"
#include "experiments/common/statistics.hpp"
#include "experiments/common/stopped.hpp"
#include "experiments/train/device.hpp"
#include "src/base/error.hpp"
#include "src/base/machine_load.hpp"
#include "src/base/screen.hpp"
#include "src/base/signals.hpp"
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
    options.add("groups", groups_, "divide the ranks into this many equal groups, which call the operation at the same time")
        .range(1, 1e6);
    options.add("strided", strided_, "form each group of every N-th rank, where N is --groups; no: of consecutive ranks");
    options
        .add("beside", beside_,
             "products: also time the operation while each rank multiplies matrices, and say how much of it is hidden")
        .one_of({"nothing", "products"});
    options.add("ceiling", ceiling_, "whether to measure the memory ceiling, where memory is mapped");
    options.add("format", format_, "output format").one_of(TextTable::formats()).changes(Effect::output);
    options
        .add("out", out_,
             "write every sample of every rank to this new record; with --format csv, a folder gets the tables instead, one "
             "file for each operation")
        .words("FILE.h5|DIR")
        .changes(Effect::output);
  }

  void check(const Launch& launch) override {
    check_request(launch);
    if (!launches_.wanted()) signals_.emplace();
  }

  bool starts_ranks() const override { return launches_.wanted(); }

  int run(Session& session) override {
    if (launches_.wanted()) return run_launches(session);
    signals_->tell(session.runtime->flight());
    const mpi::Runtime& runtime = *session.runtime;
    const bool speaks = runtime.rank() == 0;
    const auto ranks = gather_rank_facts(runtime, session.clock);
    Sweep sweep = asked_.sweep(runtime, device_.asked());
    device_.open(runtime);
    sweep.how.device = device_.memory();
    sweep.how.check = check_;
    sweep.how.ceiling = ceiling_;
    sweep.how.compare_calls = compare_calls_;
    sweep.how.beside_products = beside_ == "products";
    sweep.how.groups = {static_cast<int>(groups_), strided_};
    sweep.how.told_to_stop = [this] { return signals_->pending().has_value(); };
    const Outcome outcome = bench::run(sweep, session);
    if (outcome.rows == 0) {
      if (speaks) std::fputs(describe(nothing_measured(outcome, runtime.size()), 0, 1).c_str(), stderr);
      return static_cast<int>(Exit::usage);
    }
    Exit exit = Exit::ok;
    if (speaks) exit = report(outcome, session, ranks);
    ProcessTeam team(runtime);
    return static_cast<int>(team.broadcast(static_cast<double>(exit)));
  }

 private:
  void check_request(const Launch& launch) {
    asked_.check();
    if (beside_ == "products" && device_.asked())
      usage_error("--beside products multiplies on CPU cores", "--device is given", "leave out --device or --beside");
    device_.check();
    launches_.check(launch, record_file());
    if (std::ranges::any_of(asked_.backends, is_simulated) && (launches_.wanted() || device_.asked()))
      usage_error("a simulated benchmark runs on one process, without data", "--launches or --device is given",
                  "leave them out, or name other backends");
    if (strided_ && groups_ == 1)
      usage_error("--strided needs --groups", "--groups is 1", "add --groups 2, or leave out --strided");
    if (out_.empty()) return;
    if (gets_tables()) return require_new_tables();
    if (std::ranges::count_if(asked_.backends, is_simulated) > 1)
      usage_error("a record holds one simulated machine", "--backend " + join(asked_.backends, ","),
                  "write a record for each machine");
    if (fs::exists(out_) && launch.launcher != "compare")  // a suite replaces the record of a run that was stopped
      usage_error("the record exists already", out_, "nothing is overwritten: name another file, or remove this one");
    require_writable_file(out_, "--out");
  }

  bool gets_tables() const { return format_ == "csv" && !out_.empty() && !out_.ends_with(".h5"); }
  std::string record_file() const { return gets_tables() ? "" : out_; }

  void require_new_tables() const {
    require_writable(out_, "--out");
    for (const char* name : collective_names)
      if (const fs::path file = table_file(out_, name); fs::exists(file))
        usage_error("the folder has a table already", file.string(),
                    "nothing is overwritten: name another folder, or remove this file");
  }

  // Prints the tables to stdout, or writes them into the files of --out.
  void show(const Rows& rows) const {
    if (!gets_tables()) return fmt::print("{}", bench::print(rows, format_, screen_columns()));
    for (const fs::path& file : write_tables(rows, out_)) fmt::print("{}\n", file.string());
  }

  fs::path folder_of_out() const { return fs::absolute(out_).parent_path(); }

  int run_launches(Session& session) {
    const Launches::Results found = launches_.run(session, record_file());
    const Rows& rows = found.rows;
    if (format_ == "text") {
      say(launches_.about(found) + how_to_read(rows) + origins(rows, asked_.machine()) +
          limits(rows, rows.empty() ? 1 : rows[0].ranks * rows[0].groups) + disturbed(found.disturbance));
    }
    show(rows);
    if (format_ == "text" && !found.verdict.empty()) fmt::print("\n{}", found.verdict);
    say_record(found.files);
    if (found.done < found.all)
      say_stopped(fmt::format("{} of {} launches were done", found.done, found.all), !found.files.empty());
    return tell_wrong(wrong_in(rows)) ? static_cast<int>(Exit::check)
                                      : static_cast<int>(found.done < found.all ? Exit::runtime : Exit::ok);
  }

  // Prints a line with the paths of the records. If the tables are for programs, this line is written to stderr, because
  // programs read stdout.
  void say_record(const std::vector<std::string>& files) const {
    std::fflush(stdout);
    std::FILE* const stream = format_ == "text" ? stdout : stderr;
    if (!files.empty())
      fmt::print(stream, "\nthe record{}: {}\n", files.size() > 1 ? "s" : "", join(files, ", "));
    else if (launches_.wanted())
      fmt::print(stream, "\nno record was kept; to keep every sample: --out FILE.h5\n");
    std::fflush(stream);
  }

  static void say_stopped(const std::string& numbers, bool recorded) {
    chorale::say_stopped(
        numbers, (recorded ? "the complete ones are printed and recorded: " : "") + std::string("start it again for all"));
  }

  // Prints notes, wrapped to the width of the terminal.
  static void say(const std::string& notes) { fmt::print("{}", notes_within(notes, screen_columns())); }

  static bool tell_wrong(std::int64_t elements) {
    if (elements > 0) std::fputs(fmt::format("{} elements are wrong\n", elements).c_str(), stderr);
    return elements > 0;
  }

  // On rank 0: prints the tables and writes the record. After a signal the record is written first, because the launcher can
  // kill the ranks a second later. Otherwise the tables are printed first, because writing the record can fail.
  Exit report(const Outcome& outcome, const Session& session, const std::vector<RankFacts>& ranks) const {
    const Where memory = device_.memory() ? Where::device : asked_.heap() ? Where::heap : Where::symmetric;
    const bool crowded = std::ranges::any_of(ranks, &RankFacts::oversubscribed);
    const Conditions conditions{asked_.cold() ? Cache::cold : Cache::hot, memory, crowded, strided_};
    const Selector selector(asked_.tuning(), asked_.machine());
    Rows exact, rows;
    for (const Series& series : outcome.series) {
      exact.push_back(row_of(series, conditions, selector));
      rows.push_back(in_five_digits(exact.back()));
    }
    const std::int64_t wrong = wrong_in(rows);
    const bool in_suite = !session.run_name.empty();
    const bool keeps = !record_file().empty() && (!rows.empty() || in_suite);
    const auto keep_record = [&] {
      if (keeps) keep(exact, outcome, session, ranks, wrong > 0 ? "failed" : outcome.stopped ? "stopped" : "ok");
    };
    if (outcome.stopped) keep_record();
    const bool any_checked = std::ranges::any_of(rows, [](const SeriesRow& row) { return row.wrong.has_value(); });
    if (!in_suite && format_ == "text" && !rows.empty()) {
      if (outcome.simulated())
        say("# virtual time on one process; 1 GB is 10⁹ bytes\n"
            "# predicted, for rings: the closed form by which a plan times them\n");
      else
        say(
            fmt::format("# {} buffers in {} memory; 1 GB is 10⁹ bytes{}\n"
                        "# time: the median of the calls, each timed on its slowest rank\n"
                        "# calls ±: half the 95 % interval of this median. It is the spread of the calls of\n"
                        "#   this launch; another launch can differ by more: bench --launches {}\n{}",
                        asked_.cold() ? "cold" : "warm", where_names[static_cast<std::size_t>(memory)],
                        crowded ? "; more ranks than cores" : "", fewest_blocks,
                        wrong > 0     ? ""
                        : any_checked ? "# results were checked: every element is right\n"
                                      : "# results were not checked\n"));
      say(how_to_read(rows) + origins(rows, selector.machine()) + limits(rows, static_cast<std::int64_t>(ranks.size())) +
          disturbed(disturbance(outcome.others)));
    }
    if (!in_suite && !rows.empty()) show(rows);
    if (!outcome.stopped) keep_record();
    if (!in_suite && keeps) say_record({out_});
    const bool is_wrong = tell_wrong(wrong);
    std::fflush(stdout);
    if (outcome.stopped && !in_suite)
      say_stopped(fmt::format("{} of {} rows were measured{}", rows.size(), outcome.rows,
                              rows.empty() ? ", so nothing was kept" : ""),
                  keeps && !rows.empty());
    // The record tells a suite that this run was stopped.
    return is_wrong ? Exit::check : outcome.stopped && !in_suite ? Exit::runtime : Exit::ok;
  }

  void keep(const Rows& rows, const Outcome& outcome, const Session& session, const std::vector<RankFacts>& ranks,
            const std::string& status) const {
    const ScratchFolder scratch(folder_of_out());
    const fs::path folder = session.run_name.empty() ? make_run_folder(scratch.path(), "bench", session.clock)
                                                     : make_run_folder_at(scratch.path() / session.run_name);
    const auto recorder = open_record(folder, session, ranks);  // the folder's name becomes the run's id
    for (const std::string& name : asked_.backends)
      if (is_simulated(name)) {
        recorder->text("/", "simulated_on", simulated_machine(name));
        recorder->number("jobsize", rows.empty() ? 1 : rows[0].ranks * rows[0].groups);
      }
    bench::write(*recorder, rows, outcome.series);
    write_other_work(*recorder, outcome.others);
    recorder->finish(status);
    fs::rename(fs::canonical(recorder->file()), out_);
  }

  Asked asked_;
  train::ComputeDevice device_;
  Launches launches_;
  std::optional<Signals> signals_;
  bool check_ = true, compare_calls_ = true, ceiling_ = true, strided_ = false;
  std::int64_t groups_ = 1;
  std::string format_ = "text", out_, beside_ = "nothing";
};

}  // namespace

std::unique_ptr<Command> make_bench() { return std::make_unique<BenchCommand>(); }

}  // namespace chorale
