// `chorale watch runs/latest` shows the live status of a run. The command reads only metrics.jsonl, because a record cannot
// be opened while it is written. On a terminal the status is redrawn every second; otherwise a line is printed every five
// seconds. The command ends with the run, or on Ctrl-C.
//
//   chorale watch                     the newest run in runs/
//   chorale watch runs/<suite>        the current run of the suite; ends with the suite
//   chorale watch --once              prints the current status and exits
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "experiments/common/advice.hpp"
#include "experiments/common/command.hpp"
#include "experiments/watch/picture.hpp"
#include "src/base/error.hpp"
#include "src/base/progress.hpp"
#include "src/base/signals.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr double redraw_seconds = 1, line_seconds = 5, poll_seconds = 0.1;

class Watch final : public Command {
 public:
  void declare(Options& options) override {
    options.add_positional("run", runs_, "the folder of a run or a suite; default: runs/latest").words("DIR");
    options.add("once", once_, "print the current status and exit");
  }

  void check(const Launch&) override {
    if (runs_.size() > 1)
      usage_error("only one run can be watched", fmt::format("{} were given: {}", runs_.size(), join(runs_, ", ")),
                  "name one of them, or the folder of their suite");
    if (!runs_.empty()) folder_ = runs_[0];
    const std::filesystem::path named = folder_;
    if (std::error_code error; std::filesystem::is_regular_file(named, error) && named.extension() != ".jsonl")
      usage_error("watch takes the folder of a run", fmt::format("{} is a file", folder_),
                  fmt::format("{} watch {}", program(), named.has_parent_path() ? named.parent_path().string() : "."));
    if (once_ && watch::find_metrics(folder_).shown.empty())
      usage_error("there is nothing to watch", fmt::format("{} holds no metrics.jsonl", folder_),
                  "name the folder of a run, or omit --once to wait for one");
    const auto parent = (std::filesystem::absolute(named) / "..").lexically_normal();
    if (!runs_.empty() && !exists(named) && !exists(parent))
      usage_error("neither this folder nor the folder above it exists", folder_,
                  "name a run's folder, or the folder in which runs will be created");
    signals_.emplace();
  }

  int run(Session& session) override {
    const Progress::Screen screen = Progress::screen_of(stdout);
    double shown_at = -line_seconds;
    for (;;) {
      const bool over = look();
      const double now = session.clock.seconds();
      if (once_ || over || now - shown_at >= (screen.terminal ? redraw_seconds : line_seconds)) {
        show(session, screen, over);
        shown_at = now;
      }
      if (once_ || over) return 0;
      if (signals_->pending()) return 0;
      session.clock.sleep(poll_seconds);
    }
  }

 private:
  static bool exists(const std::filesystem::path& path) {
    std::error_code unreadable;
    return std::filesystem::exists(path, unreadable);
  }

  // Reads the new lines. Returns whether the run, or its suite, has ended. The run is looked up each time, because `latest`
  // can point to a newer run, and because a suite continues with its next run.
  bool look() {
    const watch::WatchedFiles place = watch::find_metrics(folder_);
    found_ = !place.shown.empty() && shown_.read(place.shown);
    const bool suite = !place.suite.empty() && suite_.read(place.suite);
    // The runs of a suite use the ranks of the suite. If a run was killed, the suite was therefore killed too, unless the
    // suite has written something since then.
    const bool killed = shown_.metrics().killed && shown_.written_at() >= suite_.written_at();
    return found_ && (suite ? suite_.metrics().ended() || killed : shown_.metrics().ended());
  }

  void show(Session& session, const Progress::Screen& screen, bool over) {
    const watch::View view{session.clock.wall_seconds() - shown_.written_at(), screen.columns};
    std::string text;
    if (!found_)
      text = fmt::format("waiting for a run in {}{}; press Ctrl-C to stop waiting\n", escape_control(folder_),
                         exists(folder_) ? "" : ", which does not exist yet");
    else if (screen.terminal || once_)
      text = picture(shown_.metrics(), view);
    else
      text = line(shown_.metrics(), view) +
             (over ? "the run has ended: " + escape_control(shown_.metrics().status) + "\n" : "");
    if (!screen.terminal && !once_ && text == before_) return;  // a log file gets no repeated lines
    if (screen.terminal && !before_.empty())                    // overwrites the previous status, and clears the rest below
      fmt::print("\x1b[{}F\x1b[J", std::count(before_.begin(), before_.end(), '\n'));
    fmt::print("{}", text);
    std::fflush(stdout);
    before_ = text;
  }

  std::vector<std::string> runs_;
  std::string folder_ = "runs/latest", before_;
  bool once_ = false, found_ = false;
  watch::MetricsFile shown_, suite_;
  std::optional<Signals> signals_;
};

}  // namespace

std::unique_ptr<Command> make_watch() { return std::make_unique<Watch>(); }

}  // namespace chorale
