// The loop of the guard process (guard.hpp): looks at the ranks ten times a second, and acts once.
#pragma once
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/descriptor.hpp"
#include "src/base/guard/guard_words.hpp"
#include "src/base/guard/local_ranks.hpp"
#include "src/base/guard/other_guards.hpp"

namespace chorale {

class Watchman {
 public:
  struct Job {
    int launcher = 0, ranks_on_host = 0;
    bool several_hosts = false;
    std::filesystem::path session_folder;  // the launcher's temporary files of this job
  };
  Watchman(Descriptor listening, Job job);
  void watch();  // until the last rank of the host has ended

 private:
  void wait_for_news();
  void hear_ranks();
  void hear_guards();
  void judge_progress(double passed);
  void judge_silence();
  std::vector<SeenRank> everybody() const;
  void ask_everybody();
  void lose(const std::string& explanation);
  void clean_up();

  SystemClock clock_;
  const Job job_;
  Descriptor launcher_;
  LocalRanks ranks_;
  OtherGuards others_;
  std::vector<GuardWords> heard_;  // the newest words of each other host
  bool invited_ = false;           // this is the guard of rank 0, and judges the whole run
  std::uint64_t done_ = 0;         // what all ranks had got done at the last look
  double looked_ = 0, said_ = 0, quiet_seconds_ = 0, asked_ = -1;
  double lost_at_ = -1;  // when the run was lost; −1: it was not
  bool orphaned_ = false;
};

}  // namespace chorale
