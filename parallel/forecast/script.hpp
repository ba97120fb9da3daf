// The script of a training step: the work and the calls of one rank, in order. A plan (plan.hpp) records the script while it
// runs the code of Training on phantom tensors. Kernels note their work, and pretending axes note their calls. The time of
// the step is simulated from the scripts of all ranks (simulation.hpp).
//
//   work 12 GFLOP  begin all_reduce of dp  work 9 GFLOP  wait for all_reduce  …
#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

#include "src/math/queue.hpp"

namespace chorale {

using Amounts = std::array<double, kinds_of_work>;  // by Work: flops or bytes

class Script final : public Meter {
 public:
  // A collective of all ranks of a group, or a message between two of them.
  struct Call {
    std::string group;       // the name of the axis
    int from = -1, to = -1;  // of a message: ranks within the group
    double seconds = 0;      // with no other call or work at the same time; negative: no price is known
    bool waits = true;       // a message: moves only when both ends have begun it
    double link = 0;         // between hosts: seconds for which the bytes of this rank occupy its host's link
  };
  struct Act {
    enum class Kind { work, begin, wait } kind;
    Amounts work{};  // of kind work
    int call = -1;   // of kinds begin and wait: index in calls()
  };

  void note(Work work, double amount) override;
  int begin(const Call& call);  // returns its number
  void wait(int call);
  void settle();  // writes down the work since the last act: also after the step
  void clear() { acts_.clear(), calls_.clear(), since_ = {}; }

  const std::vector<Act>& acts() const { return acts_; }
  const std::vector<Call>& calls() const { return calls_; }
  Amounts total() const;  // work of the whole step

 private:
  std::vector<Act> acts_;
  std::vector<Call> calls_;
  Amounts since_{};
};

}  // namespace chorale
