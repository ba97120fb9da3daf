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

// The bytes and messages of a call, counted from the schedules of its algorithm.
struct CallVolume {
  std::int64_t vector = 0;         // bytes of the whole vector, or of the message
  std::int64_t sent = -1;          // bytes that this rank sends; -1: unknown, because a library's own algorithm sends them
  std::int64_t messages = 0;       // that this rank sends, one after the other
  std::int64_t host_crossing = 0;  // bytes that all ranks of this rank's host send to other hosts
  int on_host = 2;                 // ranks of the group on this rank's host
};

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
    CallVolume volume = {};  // for machines whose calls have no calibrated prices
    bool scatters = false;   // a reduce_scatter
    // Between memory and a slow tier, by this rank alone: `volume.vector` bytes.
    enum class Copy : std::uint8_t { no, in, out } copy = Copy::no;
  };
  struct Act {
    enum class Kind { work, begin, wait, part } kind;
    Amounts work{};                          // of kind work
    int call = -1;                           // of kinds begin and wait: index in calls()
    std::size_t first_kernel = 0, last = 0;  // of kind work: kernels() from first_kernel to last - 1
    StepPart part = {};                      // of kind part: what follows belongs to it
  };

  explicit Script(bool with_copies = false) : with_copies_(with_copies) {}

  void note(const KernelWork& kernel) override;
  int copies(std::int64_t bytes, bool into_memory) override;
  void waits_for_copy(int number) override { wait(number); }
  void begins(const StepPart& part) override;
  int begin(const Call& call);  // returns its number
  void wait(int call);
  void settle();  // writes down the work since the last act: also after the step
  void clear() { acts_.clear(), calls_.clear(), kernels_.clear(), since_ = {}, settled_ = 0; }

  const std::vector<Act>& acts() const { return acts_; }
  const std::vector<Call>& calls() const { return calls_; }
  const std::vector<KernelWork>& kernels() const { return kernels_; }  // in order
  Amounts total() const;                                               // work of the whole step

 private:
  std::vector<Act> acts_;
  std::vector<Call> calls_;
  std::vector<KernelWork> kernels_;
  Amounts since_{};
  std::size_t settled_ = 0;  // kernels that acts have
  bool with_copies_;
};

}  // namespace chorale
