// The ranks of one host, as its guard sees them: their connections, their processes and their flight recorders.
#pragma once
#include <poll.h>

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
    std::string request;  // what the rank asks of its guard; "": it ended without saying that it finished or failed
  };
  std::vector<News> move(bool ask_how_they_ended);  // accepts new ranks, and returns what ranks say; never waits
  void answer(int rank, const std::string& text);

  bool are_over() const;  // all have ended, and no more are expected
  bool holds(int rank) const;
  int failed_with() const;    // the exit code of a rank that failed; 0: none has
  bool asked_to_end() const;  // somebody has sent a signal that asks a rank to end
  bool orphaned() const;      // a rank has lost the parent that it had when it came
  Look look();
  std::vector<SeenRank> seen() const;
  void mark();                                       // begins a new period
  std::vector<SeenRank> late() const;                // ranks that live and have not waited in this period
  std::vector<SeenRank> waiting() const;             // ranks that have waited in this period
  void judged();                                     // tells their waits that a guard watches over them
  void lose(const std::string& why, int exit_code);  // tells their waits that the run cannot go on
  void end();                                        // kills those that live

 private:
  struct Condition {  // of a process
    char state = 'X';
    int parent = 0;
    bool traced = false, asked_to_end = false;
  };
  struct Rank {
    Descriptor line, process;
    SharedPage page;
    int pid = 0, parent = 0;
    Condition now = {};              // at the last look
    std::uint64_t idles_before = 0;  // at the last mark
    bool here = true;                // its process lives
    std::string end = "";            // how it ended, if it neither finished nor failed
  };
  struct Newcomer {  // a process that has not shown its page yet
    Descriptor line;
    int pid;
    double came;
  };
  void take_in();
  bool show_in(const Newcomer& newcomer);  // false: it has not sent its page yet
  static SeenRank seen(const Rank& rank);
  static Condition condition_of(int pid);

  Clock& clock_;
  Descriptor listening_;
  int expected_;
  double changed_;  // when a rank last connected or ended
  std::vector<Newcomer> newcomers_;
  std::vector<Rank> ranks_;
};

}  // namespace chorale
