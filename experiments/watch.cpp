// `chorale watch runs/latest`: how a running job does, from its metrics.jsonl alone: a record that is being written is
// nobody else's to open. On a terminal the picture is redrawn every second; elsewhere a line comes every five. It ends with
// the run, or on Ctrl-C.
//
//   chorale watch                     the newest run in runs/
//   chorale watch runs/<suite>        the run that the suite is at; ends with the suite
//   chorale watch --once              one picture of what is there
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "experiments/command.hpp"
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
    options.add_positional("run", runs_, "the run to watch, or a suite of them; runs/latest when none is named")
        .words("DIR");
    options.add("once", once_, "show what is there now, and leave");
  }

  void check(const Launch&) override {
    if (runs_.size() > 1)
      usage_error("one run can be watched", fmt::format("{} were given: {}", runs_.size(), join(runs_, ", ")),
                  "name one of them, or the folder of their suite");
    if (!runs_.empty()) folder_ = runs_[0];
    const std::filesystem::path named = folder_;
    if (std::error_code error; std::filesystem::is_regular_file(named, error) && named.extension() != ".jsonl")
      usage_error("a run is watched by its folder", fmt::format("{} is a file", folder_),
                  fmt::format("chorale watch {}", named.has_parent_path() ? named.parent_path().string() : "."));
    if (once_ && watch::find_metrics(folder_).shown.empty())
      usage_error("there is nothing to watch", fmt::format("{} holds no metrics.jsonl", folder_),
                  "name a run's folder, or leave --once out to wait for one");
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
  // Reads what is new; whether all is over. Each time the run is looked for again: `latest` moves, and a suite goes on to
  // its next.
  bool look() {
    const watch::Place place = watch::find_metrics(folder_);
    found_ = !place.shown.empty() && shown_.read(place.shown);
    const bool suite = !place.suite.empty() && suite_.read(place.suite);
    return found_ && (suite ? suite_.metrics().ended() : shown_.metrics().ended());
  }

  void show(Session& session, const Progress::Screen& screen, bool over) {
    const watch::View view{session.clock.wall_seconds() - shown_.written_at(), screen.columns};
    std::string text;
    if (!found_)
      text = fmt::format("waiting for a run in {}\n", escape_control(folder_));
    else if (screen.terminal || once_)
      text = picture(shown_.metrics(), view);
    else
      text = line(shown_.metrics(), view) +
             (over ? "the run has ended: " + escape_control(shown_.metrics().status) + "\n" : "");
    if (!screen.terminal && !once_ && text == before_) return;  // a line that says nothing new is noise in a log
    if (screen.terminal && !before_.empty())  // over the last picture; what of it stands out below is cleared
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
