// The ranks of one host as seen by the guard of that host: their connections, their processes and their flight recorders.
#pragma once
#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include <chorale/clock.hpp>
#include "src/base/descriptor.hpp"
#include "src/base/guard/explanation.hpp"
#include "src/base/guard/flight.hpp"
#include "src/base/guard/look.hpp"

namespace chorale {

class LocalRanks {
 public:
  LocalRanks(Descriptor listening, int expected, Clock& clock)
      : clock_(clock), listening_(std::move(listening)), expected_(expected), changed_(clock.seconds()) {}

  void add_to(std::vector<pollfd>& files) const;
  struct News {
    int rank;
    std::string request;  // the rank's request to its guard, or "" if the rank ended without reporting that it finished or
                          // failed
  };
  std::vector<News> move(bool ask_how_they_ended);  // accepts new ranks, and returns the messages of ranks; never waits
  void answer(int rank, const std::string& text);

  bool are_over() const;  // whether all ranks have ended and no more ranks are expected
  bool holds(int rank) const;
  std::optional<SeenRank> failed() const;  // a rank that failed and reported why
  bool asked_to_end() const;               // whether a signal has asked a rank to end
  bool orphaned() const;                   // whether a rank has lost the parent that it had when it connected
  Look look();
  std::vector<SeenRank> seen() const;
  void mark();                                       // starts a new observation period, for late() and waiting()
  std::vector<SeenRank> late() const;                // running ranks that have not waited since the latest mark()
  std::vector<SeenRank> waiting() const;             // ranks that have waited since the latest mark()
  void judged();                                     // extends the deadlines of the ranks' waits, because a guard is
                                                     // watching the ranks
  void lose(const std::string& why, int exit_code);  // ends the waits of all ranks, because the run cannot go on
  void ask_to_end();                                 // by SIGUSR1, for which no launcher sets a limit
  void end();                                        // kills all ranks that are still running
  std::vector<int> numbers() const;                  // of the ranks that have connected

 private:
  struct Condition {  // condition of a process
    char state = 'X';
    int parent = 0;
    bool traced = false, asked_to_end = false;
  };
  struct Rank {
    Descriptor line, process;
    SharedPage page;
    int pid = 0, parent = 0;
    Condition now = {};              // condition when the guard last looked
    std::uint64_t idles_before = 0;  // value of `idles` at the latest call of mark()
    bool here = true;                // whether the rank's process is running
    std::string end = "";            // how the process ended, if the rank reported neither that it finished nor that it
                                     // failed
  };
  struct Newcomer {  // a process that has not sent its page yet
    Descriptor line;
    int pid;
    double came;
  };
  void take_in();
  bool show_in(const Newcomer& newcomer);  // returns false if the process has not sent its page yet
  static SeenRank seen(const Rank& rank);
  static Condition condition_of(int pid);
  void signal(int number);

  Clock& clock_;
  Descriptor listening_;
  int expected_;
  double changed_;  // time at which a rank last connected or ended
  std::vector<Newcomer> newcomers_;
  std::vector<Rank> ranks_;
};

}  // namespace chorale
