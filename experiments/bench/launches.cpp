#include "experiments/bench/launches.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <utility>

#include "experiments/bench/beside.hpp"
#include "experiments/common/advice.hpp"
#include "experiments/common/each.hpp"
#include "experiments/common/random_order.hpp"
#include "experiments/common/statistics.hpp"
#include "experiments/report/comparison.hpp"
#include "experiments/report/disturbed.hpp"
#include "experiments/report/suite_summary.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/launcher.hpp"
#include "src/base/progress.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"
#include "src/record/reader.hpp"
#include "src/record/recorder.hpp"
#include "src/record/run_folder.hpp"
#include "src/record/scratch_folder.hpp"

namespace chorale::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path twin_of(const fs::path& out) {
  return out.parent_path() / (out.stem().string() + ".against" + out.extension().string());
}

// The reason why a launch failed: its error message, or otherwise the first output line that is not a warning.
std::string reason_in(const std::string& errors) {
  std::string first;
  for (const std::string& line : split(errors, '\n')) {
    if (line.starts_with("error: ")) return line.substr(7);
    if (first.empty() && !line.starts_with("warning: ") && line.find_first_not_of(" \t-=*[]") != std::string::npos)
      first = trim(line);
  }
  return first.empty() ? "it printed nothing" : first;
}

// Parses the rows that a launch printed. The MPI library can print other lines before the rows.
Rows rows_in(const std::string& output, const std::string& command) {
  const auto begin = output.find("[\n");
  const Json printed = begin == std::string::npos ? Json() : Json::parse(output.substr(begin), nullptr, false);
  if (!printed.is_array())
    throw Error(Exit::runtime, "a launch printed no results", command, "run it by hand and read its output");
  return each(printed, row_from);
}

// Merges the rows that the launches recorded for one case.
SeriesRow merged_row(const Rows& rows) {
  SeriesRow row = rows[0];
  const auto known = [&](double SeriesRow::*member) {
    std::vector<double> values;
    for (const SeriesRow& other : rows)
      if (!std::isnan(other.*member)) values.push_back(other.*member);
    return values;
  };
  const Summary time = summarize(known(&SeriesRow::median));
  for (double SeriesRow::*bandwidth : {&SeriesRow::algorithm_bandwidth, &SeriesRow::bus_bandwidth})
    row.*bandwidth = row.*bandwidth * row.median / time.median;
  row.median = time.median;
  row.ci_low = time.ci_low;
  row.ci_high = time.ci_high;
  for (double SeriesRow::*member : {&SeriesRow::p5, &SeriesRow::p95, &SeriesRow::p99, &SeriesRow::ceiling,
                                    &SeriesRow::barrier, &SeriesRow::products_alone, &SeriesRow::call_beside,
                                    &SeriesRow::products_beside, &SeriesRow::both, &SeriesRow::both_predicted})
    if (!std::isnan(row.*member)) row.*member = summarize(known(member)).median;
  if (!std::isnan(row.max)) row.max = std::ranges::max(known(&SeriesRow::max));  // the slowest call of all launches
  row.products = std::llround(median_of(each(rows, [](const SeriesRow& r) { return static_cast<double>(r.products); })));
  row.hidden = hidden_share(row.median, row.products_alone, row.both);
  row.repetitions = 0;
  for (const SeriesRow& other : rows) row.repetitions += other.repetitions;
  if (row.wrong) row.wrong = wrong_in(rows);
  row.launches = std::ssize(rows);
  return in_five_digits(row);
}

void require_same_case(const SeriesRow& row, const SeriesRow& first, std::size_t number) {
  static const std::set<std::string> of_case{"op",     "backend", "algorithm", "dtype",  "redop",  "root",
                                             "chunks", "bytes",   "in_place",  "groups", "strided"};
  std::size_t compared = 0;
  each_column<SeriesRow>([&](const auto& field) {
    const std::string& name = field.column.name;
    if (!of_case.contains(name)) return;
    ++compared;
    require(row.*field.member == first.*field.member, "launches differ: case {} has another {} in one of them", number,
            name);
  });
  require(compared == of_case.size(), "{} of {} columns of a case are known", compared, of_case.size());
}

// The table of `report --compare`, in which A is the other program and B is this program.
std::string difference_of(const report::RecordSet& other, const report::RecordSet& own) {
  const auto found = report::compare(report::metrics_of(other), report::metrics_of(own)).differences;
  if (found.empty()) return "";
  return "A: the other program, B: this one\n" + report::table_of(found, "text").print("text", screen_columns()) +
         report::legend_of(found);
}

}  // namespace

Rows merged(const std::vector<Rows>& launches) {
  Rows rows;
  for (std::size_t i = 0; i < launches.at(0).size(); ++i) {
    Rows same;
    for (const Rows& launch : launches) {
      require(launch.size() == launches[0].size(), "a launch measured {} cases, but the first launch {}", launch.size(),
              launches[0].size());
      require_same_case(launch[i], launches[0][i], i);
      same.push_back(launch[i]);
    }
    rows.push_back(merged_row(same));
  }
  return rows;
}

// One of the alternating programs, and the results of its launches.
struct Launches::Contestant {
  std::string program;
  fs::path folder;
  std::vector<Rows> rows = {};
  std::vector<std::int64_t> orders = {};
  std::vector<double> seconds = {};

  fs::path file(std::size_t launch, const char* kind) const {
    return folder / fmt::format("launch-{}.{}", launch + 1, kind);
  }
  fs::path next(const char* kind) const { return file(rows.size(), kind); }
  void keep(const Session& session, const std::string& session_id, std::int64_t all, const fs::path& out) const;
};

// The root attributes that describe the program and the machine are copied from the first launch.
void Launches::Contestant::keep(const Session& session, const std::string& session_id, std::int64_t all,
                                const fs::path& out) const {
  static const char* const kept[] = {"user",      "launchdate", "hostname", "hostlist",     "chorale_version", "git_commit",
                                     "git_dirty", "compiler",   "cxxflags", "hdf5_version", "machine"};
  const fs::path place = make_run_folder(folder, "bench", session.clock);
  Facts facts{{"run_id", place.filename().string()}, {"cmdline", session.command_line}, {"session", session_id}};
  for (const auto& [name, value] : Reader(file(0, "h5")).attributes())
    if (std::ranges::find(kept, name) != std::end(kept)) facts.emplace_back(name, value);
  std::vector<std::string> ids;
  for (std::size_t launch = 0; launch < rows.size(); ++launch) ids.push_back(fmt::format("launch-{}", launch + 1));

  Recorder recorder(place, facts, session.clock);
  recorder.number("launches", static_cast<std::int64_t>(ids.size()));
  recorder.text("config", "toml", session.options.toml());
  recorder.text("config", "origins", session.options.origins());
  recorder.dimension({.name = "launch", .size = std::ssize(ids)}, "launches");
  recorder.rows("launches", std::ssize(ids));
  recorder.texts("launches", "id", "launch", ids);
  recorder.numbers("launches", "order", {"launch"}, orders, "1", "seed of the order in which its cases were measured");
  recorder.numbers("launches", "time", {"launch"}, seconds, "s", "from the start of the launch to its end");
  for (std::size_t launch = 0; launch < ids.size(); ++launch) recorder.attach("runs/" + ids[launch], file(launch, "h5"));
  const bool wrong = std::ranges::any_of(rows, [](const Rows& launch) { return wrong_in(launch) > 0; });
  recorder.finish(wrong ? "failed" : std::ssize(rows) < all ? "stopped" : "ok");
  fs::rename(fs::canonical(recorder.file()), out);
}

void Launches::declare(Options& options) {
  options
      .add("launches", launches_,
           "start this many launches, one after the other, and merge their records; 0: measure in this process")
      .range(0, 1000)
      .changes(Effect::output);
  options.add("ranks-per-launch", ranks_, "ranks of each launch").range(1, 1e6);
  options
      .add("against", against_,
           "path of another chorale; its launches alternate with these, and its record is FILE.against.h5")
      .words("PROGRAM");
  options.add("seed", seed_, "seed of the order of the launches, and of the rows in each").range(0, 1e18);
}

void Launches::check(const Launch& launch, const std::string& out) {
  if (!against_.empty() && !wanted()) usage_error("--against needs --launches", "--launches is 0", "add --launches 6");
  if (!wanted()) return;
  if (!launch.launcher.empty())
    usage_error("--launches starts the ranks itself", fmt::format("{} started this process", launch.launcher),
                fmt::format("start it alone: {} bench … --ranks-per-launch {} --launches {}", program(), ranks_, launches_));
  if (!against_.empty() && (!fs::is_regular_file(against_) || access(against_.c_str(), X_OK) != 0))
    usage_error("no such program", fmt::format("--against {} is not a file that can be executed", against_),
                "name another chorale: --against ../before/build/chorale");
  if (!against_.empty() && out.empty())
    usage_error("--against needs --out", "it writes two records",
                "add --out new.h5; the second record is then new.against.h5");
  if (!against_.empty() && fs::exists(twin_of(out)))
    usage_error("the record exists already", twin_of(out).string(),
                "nothing is overwritten: name another file, or remove this one");
  signals_.emplace();
}

Launches::Results Launches::run(Session& session, const std::string& out) {
  const fs::path place = out.empty() ? fs::temp_directory_path() : fs::absolute(out).parent_path();
  const ScratchFolder scratch(place);
  std::vector<Contestant> contestants{{fs::read_symlink("/proc/self/exe").string(), scratch.path() / "this"}};
  if (!against_.empty()) contestants.push_back({fs::absolute(against_).string(), scratch.path() / "other"});
  unsetenv("CHORALE_AGAINST");  // otherwise the launches would inherit this variable and refuse it
  for (const Contestant& who : contestants) fs::create_directory(who.folder);
  take_turns(session, contestants);

  Results results{.rows = merged(contestants[0].rows), .all = launches_ * std::ssize(contestants)};
  const std::string session_id = fmt::format("{}-{:08x}", iso_time(session.clock.wall_seconds()), std::random_device()());
  for (std::size_t c = 0; c < contestants.size(); ++c) {
    results.done += std::ssize(contestants[c].rows);
    const fs::path file = out.empty() ? scratch.path() / "all.h5" : c == 0 ? fs::path(out) : twin_of(out);
    contestants[c].keep(session, session_id, launches_, file);
    results.files.push_back(file.string());
  }
  const report::RecordSet records = report::read_records({results.files[0]});
  results.verdict = contestants.size() > 1 ? difference_of(report::read_records({results.files[1]}), records)
                                           : report::fastest_of(records, screen_columns());
  results.disturbance = report::disturbance_of(report::read_records(results.files));
  if (out.empty()) results.files.clear();
  return results;
}

// Runs the launches of all contestants until all launches are done or a signal arrives. In both cases, every contestant
// keeps the same number of launches.
void Launches::take_turns(Session& session, std::vector<Contestant>& contestants) {
  std::mt19937_64 random(static_cast<std::uint64_t>(seed_));
  const std::int64_t all = launches_ * std::ssize(contestants);
  std::int64_t done = 0;
  Progress progress = session.progress("bench", all);
  const double began = session.clock.seconds();
  for (std::int64_t launch = 0; launch < launches_; ++launch) {
    const auto order = static_cast<std::int64_t>(random() >> 32) + 1;  // both programs measure the cases in the same order
    for (const std::size_t turn : random_order(contestants.size(), random)) {
      const bool complete = launch_next(session, contestants[turn], order,
                                        [&] { progress.update(done, fmt::format("launches of {} ranks", ranks_)); });
      if (!complete && launch == 0)
        throw Error(Exit::runtime, "stopped", fmt::format("{} of {} launches were done", done, all),
                    "nothing was kept: start it again");
      if (!complete) {
        const auto kept = static_cast<std::size_t>(launch);  // one program can have one launch more than the other
        for (Contestant& who : contestants) {
          who.rows.resize(kept);
          who.orders.resize(kept);
          who.seconds.resize(kept);
        }
        return;
      }
      if (++done == 1 && all > 1) {
        const double took = session.clock.seconds() - began;
        progress.say(fmt::format("the first launch took {}; at this pace all {} take {}", human_seconds(took), all,
                                 human_seconds(took * static_cast<double>(all))));
      }
    }
  }
  progress.finish();
}

// Returns true if the launch completed, false after a signal.
bool Launches::launch_next(Session& session, Contestant& who, std::int64_t order, const std::function<void()>& meanwhile) {
  std::vector<std::string> words{who.program, "bench"};
  for (const std::string& word : session.options.words({"launches", "ranks-per-launch", "against", "seed", "out"}))
    words.push_back(word);
  words.insert(words.end(), {"--launches=0", fmt::format("--order={}", order), "--format=json"});
  const Launcher launcher;
  const std::string by_hand = join(launcher.command(ranks_, words), " ");
  words.push_back("--out=" + who.next("h5").string());
  const double started = session.clock.seconds();
  bool told_to_stop = false;
  const int code =
      launcher.run(launcher.command(ranks_, words), who.next("json"), who.next("txt"), session.clock, [&](int process) {
        if (const auto signal = signals_->pending()) {
          told_to_stop = true;
          kill(process, *signal);
        }
        meanwhile();
      });
  told_to_stop = told_to_stop || signals_->pending();  // a signal can arrive after the last check
  if (told_to_stop) return false;
  const std::string said = contents_of(who.next("txt")).value_or("");
  if (code != static_cast<int>(Exit::ok) && code != static_cast<int>(Exit::check))
    throw Error(code == static_cast<int>(Exit::usage) ? Exit::usage : Exit::runtime,
                fmt::format("launch {} of {} failed with exit code {}", who.rows.size() + 1, launches_, code),
                reason_in(said), "run it by hand: " + by_hand);
  for (const std::string& line : split(said, '\n')) {
    const bool warns = line.starts_with("warning: ") &&
                       !std::exchange(warned_, true);  // prints only the first warning about a busy machine
    if (warns || (line.starts_with("skipped: ") && who.rows.empty())) std::fputs((line + "\n").c_str(), stderr);
  }
  who.rows.push_back(rows_in(contents_of(who.next("json")).value_or(""), by_hand));
  who.orders.push_back(order);
  who.seconds.push_back(session.clock.seconds() - started);
  return true;
}

std::string Launches::about(const Results& results) const {
  const std::int64_t launches = results.rows.empty() ? 0 : results.rows[0].launches;
  return fmt::format("# {} launch{} of {} ranks; time: the median of the launches\n# launches ±: half {}\n", launches,
                     launches == 1 ? "" : "es", ranks_,
                     launches < static_cast<std::int64_t>(fewest_blocks) ? "the range of the launches"
                                                                         : "the 95 % interval of this median");
}

}  // namespace chorale::bench
