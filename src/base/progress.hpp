// The progress line of a long job. On a terminal, the first update is shown immediately. Later updates rewrite the line in
// place, at most ten times a second. If the output is a pipe or a file, a plain line is printed after two seconds, and then
// every five seconds. finish() always prints its line.
//
//   prove  312/1000  31 %  12.4 s, 27.4 s to go at this pace  ring, 7 ranks
//
// The progress line shares the terminal with the log. Log clears the line before it writes, and the next update draws the
// line again.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include <chorale/clock.hpp>

namespace chorale {

class Progress {
 public:
  struct Screen {
    std::FILE* stream = stderr;  // nullptr: nothing is shown
    bool terminal = false;
    int columns = 80;
  };
  static Screen screen_of(std::FILE* stream);
  static Screen screen_at(std::string_view log_level);  // stderr; a null stream if the level is above info
  static void make_way();                               // clears the progress line, if a terminal shows it

  Progress(std::string what, std::int64_t total, Clock& clock, Screen screen);
  ~Progress() { make_way(); }  // clears a line that finish() has not completed
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void expect(std::int64_t total) { total_ = total; }
  // Sets an estimate of the total time, which the lines show until some work is done.
  void guess(double seconds) { guessed_ = seconds; }
  void update(std::int64_t done, const std::string& note = "");
  void say(const std::string& text);  // prints this text above the progress line
  void finish();                      // prints the last line: "prove 1000/1000 in 40.1 s"

 private:
  double seconds_to_go(double elapsed) const;
  std::string line(const std::string& note) const;
  void show(std::string text, bool keep);

  std::string what_;
  std::int64_t total_;
  Clock& clock_;
  Screen screen_;
  double started_;
  double shown_, guessed_ = 0;
  std::int64_t done_ = 0;
  double last_done_ = 0;  // time of the update that first reported `done_`, in seconds from the start
};

}  // namespace chorale
