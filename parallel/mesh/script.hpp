// The script of a training step lists the work and the calls of one rank, in order. A plan (plan.hpp) records the script
// while it runs the code of Training on phantom tensors. Kernels record their work, and simulated axes (PretendedAxis)
// record their calls. The duration of the step is simulated from the scripts of all ranks (cpu_step_run.hpp).
//
//   work 12 GFLOP  begin all_reduce of dp  work 9 GFLOP  wait for all_reduce  …
#pragma once
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/math/queue.hpp"

namespace chorale {

// The numbers of bytes and messages of a call, counted from the schedules of its algorithm.
struct CallVolume {
  std::int64_t vector = 0;         // bytes of the full vector, or of the message
  std::int64_t sent = -1;          // bytes that this rank sends; −1 if the number is unknown, because an algorithm inside
                                   // MPI or NCCL sends them
  std::int64_t messages = 0;       // number of messages that this rank sends, one after the other
  std::int64_t host_crossing = 0;  // bytes that all ranks of this rank's host send to other hosts
  int on_host = 2;                 // ranks of the group on this rank's host
  std::int64_t messages_crossing = 0;  // how many of `messages` have the latency between hosts
  std::int64_t switch_crossing = 0;    // bytes that all ranks under this rank's leaf switch send to other leaf switches
};

using Amounts = std::array<double, kinds_of_work>;  // flops or bytes of each kind of Work

class Script final : public Meter {
 public:
  // A collective of all ranks of a group, or a message between two of them.
  struct Call {
    std::string group;       // the name of the axis
    int from = -1, to = -1;  // sender and receiver of a message, as ranks within the group
    double seconds = 0;      // duration if no other call or work runs at the same time; negative if it is unknown
    bool waits = true;       // for a message: the transfer starts only when sender and receiver have begun the call
    double link = 0;         // time, in seconds, for which this rank's bytes to other hosts occupy the link of this rank's
                             // host
    CallVolume volume = {};  // used for machines for which no calibrated times of calls exist
    bool scatters = false;   // whether the call is a reduce_scatter
    // Instead of communication, a Call can describe a copy between a slow memory tier and the rank's memory. The value `in`
    // is a copy to the rank's memory, and `out` is a copy to the tier. The copy has `volume.vector` bytes. `update` is
    // part of an update for which the program does not wait. It reads and writes this number of bytes.
    enum class Copy : std::uint8_t { no, in, out, update } copy = Copy::no;
    bool of_update = false;  // whether this copy belongs to an update for which the program does not wait
  };
  struct Act {
    enum class Kind { work, begin, wait, part } kind;
    Amounts work{};                          // for kind work
    int call = -1;                           // for kinds begin and wait: index in calls()
    std::size_t first_kernel = 0, last = 0;  // for kind work: the elements of kernels() in [`first_kernel`, `last`)
    StepPart part = {};                      // for kind part: the part of the step that begins here
  };

  explicit Script(bool with_copies = false) : with_copies_(with_copies) {}

  void note(const KernelWork& kernel) override;
  int copies(std::int64_t bytes, bool into_memory) override;
  void waits_for_copy(int number) override {
    if (!bucket_) wait(number);
  }
  void begins(const StepPart& part) override;
  void begins_update(std::size_t bucket) override { bucket_ = bucket; }
  void leaves_update() override { bucket_.reset(); }
  void waits_for_update(std::size_t bucket) override;
  // For a step in which the update of the step before it proceeds, and at whose end an equal update begins: moves the copies
  // of the update to the beginning of the step.
  void begin_with_update();
  int begin(const Call& call);  // returns the call's number
  void wait(int call);
  void settle();  // adds an act for the work since the last act; must also be called at the end of the step
  // Keeps last_: an update can end in the next step, whose calls have the same numbers, because the steps are equal.
  void clear() {
    acts_.clear();
    calls_.clear();
    kernels_.clear();
    since_ = {};
    settled_ = 0;
  }

  const std::vector<Act>& acts() const { return acts_; }
  const std::vector<Call>& calls() const { return calls_; }
  const std::vector<KernelWork>& kernels() const { return kernels_; }  // in order
  Amounts total() const;                                               // total work of the complete step

 private:
  int begin_copy(std::int64_t bytes, Call::Copy copy);

  std::vector<Act> acts_;
  std::vector<Call> calls_;
  std::vector<KernelWork> kernels_;
  Amounts since_{};
  std::size_t settled_ = 0;                                // number of kernels that have been added to an act
  std::optional<std::size_t> bucket_;                      // whose update the program starts or continues
  std::map<std::size_t, std::map<Call::Copy, int>> last_;  // the last calls of each bucket's update. Copies in one direction
                                                           // run one after the other, so the others are over by then
  bool with_copies_;
};

}  // namespace chorale
