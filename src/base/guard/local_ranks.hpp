// The ranks of one host, as its guard sees them: their lines, their processes and their flight recorders.
#pragma once
#include <poll.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/descriptor.hpp"
#include "src/base/guard/explanation.hpp"
#include "src/base/guard/flight.hpp"
#include "src/base/guard/look.hpp"

namespace chorale {

class LocalRanks {
 public:
  LocalRanks(Descriptor listening, int expected, Clock& clock)
      : clock_(clock), listening_(std::move(listening)), expected_(expected) {}

  void add_to(std::vector<pollfd>& files) const;
  struct News {
    int rank;
    std::string request;  // what the rank asks of its guard; "": it ended without saying that it finished or failed
  };
  std::vector<News> move();  // takes in ranks, and returns what they say; never waits
  void answer(int rank, const std::string& text);

  bool are_over(bool no_more_come) const;  // all have come, unless no more come, and have ended
  bool any_failed() const;
  Look look() const;
  std::vector<SeenRank> seen() const;
  void lose(const std::string& why);  // tells their waits that the run cannot go on
  void end();                         // kills those that live
  // Files of shared memory that ranks mapped when the run was lost. MPI removes them only if the ranks end well.
  const std::set<std::filesystem::path>& leftovers() const { return leftovers_; }

 private:
  struct Rank {
    Descriptor line, process;
    SharedPage page;
    int pid = 0;
    bool here = true;      // its process lives
    std::string end = "";  // how it ended, if it neither finished nor failed
  };
  void take_in();

  Clock& clock_;
  Descriptor listening_;
  int expected_, came_ = 0;
  std::vector<Rank> ranks_;
  std::set<std::filesystem::path> leftovers_;
};

}  // namespace chorale
