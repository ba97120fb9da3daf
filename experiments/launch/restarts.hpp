// Decides what follows the end of a run: another start, or the end of the launch. The decision depends only on the ends so
// far, so a test can pass any.
//
//   how the run ended                       what follows
//   complete; asked to end                  the end, with code 0
//   died, hung, host gone, launcher gone    another start. After three deaths of the same rank in the same step, the end,
//                                           because that step kills the rank
//   failed with code 1 (NaN, a full disk)   one more start from the same state, because an exact run repeats the failure
//   failed with code 2 or 3                 the end with the same code: another start cannot help
//   unknown: no verdict, no code            one more start
//   no rank was started                     if a step is saved, another start: the launcher or the scheduler can recover;
//                                           otherwise one more start
//
// Starts without progress between them wait longer and longer: 0, 1, 2, 4, … 60 s. A newly saved step ends the series.
#pragma once
#include <cstdint>
#include <string>

namespace chorale::launch {

enum class Ended : std::uint8_t { complete, stopped, died, failed, not_started, unknown };

struct EndOfRun {
  Ended how = Ended::unknown;
  int exit_code = 0;
  int rank = -1;            // the rank that died; −1: unknown
  std::string doing = "";   // what it was doing: "step 17"
  std::int64_t saved = -1;  // newest saved step; −1: none
};

struct NextStart {
  bool comes = false;
  double wait_seconds = 0;  // before the next start
  int exit_code = 0;        // otherwise
  std::string why = "";     // why the launch ends although the run is not complete
};

class Restarts {
 public:
  explicit Restarts(std::int64_t most) : most_(most) {}
  NextStart after(const EndOfRun& end);
  std::int64_t count() const { return count_; }  // number of starts after the first

 private:
  NextStart give_up(int exit_code, std::string why) const { return {.exit_code = exit_code, .why = std::move(why)}; }

  std::int64_t most_, count_ = 0;
  std::int64_t fruitless_ = 0;    // ends in a row without a newly saved step
  std::int64_t same_deaths_ = 0;  // deaths in a row of the same rank in the same step, without a newly saved step
  std::int64_t failures_ = 0;     // failures and unknown ends in a row without a newly saved step
  EndOfRun before_ = {};
};

}  // namespace chorale::launch
