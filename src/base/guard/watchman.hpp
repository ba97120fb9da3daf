// The loop of the guard process (guard.hpp). The loop looks at the ranks ten times a second. The guard declares at most once
// that the run cannot go on.
#pragma once
#include <string>
#include <vector>

#include <chorale/clock.hpp>
#include "src/base/descriptor.hpp"
#include "src/base/guard/guard_words.hpp"
#include "src/base/guard/leftovers.hpp"
#include "src/base/guard/local_ranks.hpp"
#include "src/base/guard/other_guards.hpp"
#include "src/base/guard/patience.hpp"

namespace chorale {

class Watchman {
 public:
  struct Job {
    int ranks = 1, ranks_on_host = 0;  // 0: unknown
    std::string after_request;         // the launcher's action on ranks that were asked to end, in words
    Leftovers leftovers;
    std::string supervisor = "";  // an invitation (other_guards.hpp) of the supervisor that started this run; "": none
  };
  Watchman(Descriptor listening, Job job, Clock& clock);
  void watch();  // returns after the last rank of the host has ended

 private:
  void wait_for_news();
  void hear_ranks();
  void hear_guards();
  void hear_supervisor();
  void look();
  void answer_request(double now);
  void judge_progress(const Look& all, double passed);
  void warn_of_late_ranks(const Look& all, double passed);
  void judge_silence();
  std::vector<SeenRank> everybody() const;
  GuardWords words() const;
  // Called if the run cannot go on. Prints the reason, and passes it to all ranks.
  void explain(const std::string& explanation, Verdict verdict);
  // Called if the run cannot go on and the cause has already been reported. Makes the waiting ranks end with this exit code.
  void lose(const std::string& why, Verdict verdict, int exit_code, bool tell_others);
  void clean_up();

  Clock& clock_;
  const Job job_;
  LocalRanks ranks_;
  OtherGuards others_, supervisor_;
  Patience patience_;
  Look look_;                     // the newest state of the ranks of this host
  Look then_;                     // the state of all ranks at their latest progress
  double quiet_ = 0;              // seconds since the latest progress, or −1 after a warning was printed
  double looked_ = 0, said_ = 0;  // times of the latest look and of the latest message
  bool has_asked_ = false;        // whether this guard has asked the other guards for the flight recorders of their ranks
  double lost_at_ = -1;           // time at which the guard found that the run cannot go on, or −1 if it can go on
  double asked_at_ = -1;          // time at which a request to end was first seen
  bool orphaned_ = false, judges_ = false, has_answered_ = false;
};

}  // namespace chorale
