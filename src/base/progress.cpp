#include "src/base/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr double interval_on_terminal = 0.1, interval = 5, first_after = 2;  // seconds

std::FILE* drawn_on = nullptr;  // the terminal that shows an unfinished line; a program draws only one line at a time

}  // namespace

void Progress::make_way() {
  std::FILE* const terminal = std::exchange(drawn_on, nullptr);
  if (terminal) {
    std::fputs("\r\x1b[K", terminal);
    std::fflush(terminal);
  }
}

Progress::Screen Progress::screen_of(std::FILE* stream) {
  winsize size{};
  const char* term = std::getenv("TERM");
  const bool terminal = isatty(fileno(stream)) && term && std::string(term) != "dumb";
  const bool known = terminal && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return {stream, terminal, known ? size.ws_col : 80};
}

Progress::Screen Progress::screen_at(std::string_view log_level) {
  return log_level == "info" || log_level == "debug" ? screen_of(stderr) : Screen{.stream = nullptr};
}

Progress::Progress(std::string what, std::int64_t total, Clock& clock, Screen screen)
    : what_(std::move(what)),
      total_(total),
      clock_(clock),
      screen_(screen),
      started_(clock.seconds()),
      shown_(started_ - (screen.terminal ? interval_on_terminal : interval - first_after)) {}

// The pace is the mean time per finished item. While an item is in progress, the estimate decreases, but not below the time
// that the later items need.
double Progress::seconds_to_go(double elapsed) const {
  const double a_piece = last_done_ / static_cast<double>(done_), left = static_cast<double>(total_ - done_);
  return std::max(a_piece * left - (elapsed - last_done_), a_piece * (left - 1));
}

std::string Progress::line(const std::string& note) const {
  const double elapsed = clock_.seconds() - started_;
  std::string text = fmt::format("{}  {}/{}", what_, done_, total_);
  if (total_ > 0) text += fmt::format("  {} %", 100 * done_ / total_);
  text += "  " + human_seconds(elapsed);
  if (const double left = done_ > 0 && done_ < total_ ? seconds_to_go(elapsed) : 0; left > 0)
    text += ", " + human_seconds(left) + " to go at this pace";
  else if (done_ == 0 && guessed_ > 0)
    text += fmt::format(", about {} to go", human_seconds(std::max(0.0, guessed_ - elapsed)));
  return note.empty() ? text : text + "  " + escape_control(note);
}

void Progress::update(std::int64_t done, const std::string& note) {
  const double now = clock_.seconds();
  if (done != done_) {
    done_ = done;
    last_done_ = now - started_;
  }
  if (now - shown_ < (screen_.terminal ? interval_on_terminal : interval)) return;
  shown_ = now;
  show(line(note), false);
}

void Progress::say(const std::string& text) { show(what_ + "  " + escape_control(text), true); }

void Progress::finish() {
  show(fmt::format("{}  {}/{} in {}", what_, total_, total_, human_seconds(clock_.seconds() - started_)), true);
}

void Progress::show(std::string text, bool keep) {
  if (!screen_.stream) return;
  if (screen_.terminal) {
    text = "\r" + first_columns(text, screen_.columns - 1) + "\x1b[K";
    drawn_on = keep ? nullptr : screen_.stream;
    if (keep) text += "\n";
  } else {
    text += "\n";
  }
  std::fputs(text.c_str(), screen_.stream);
  std::fflush(screen_.stream);
}

}  // namespace chorale
