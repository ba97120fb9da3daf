// A CallHistory records the calls that a rank has made in one group. It holds the number of calls, and the descriptions and
// histories of the newest 64 calls. A history is a hash that is equal on all ranks that have made the same calls so far.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/backends/message/control.hpp"
#include "collectives/transport/transport.hpp"

namespace chorale {

class CallHistory {
 public:
  explicit CallHistory(int world_rank) : rank_(world_rank) {}

  void enter(const Plan& plan);  // stores the plan's description, for errors about its calls
  void note(const Run& run, std::uint64_t signature) {
    made_[run.sequence % made_.size()] = {run.sequence, run.history, signature};
    calls_ = run.sequence;
  }

  std::uint64_t calls() const { return calls_; }
  std::uint64_t of(std::uint64_t sequence) const;      // the history up to this call, or 0 if it is too old or not compared
  std::string words_of(std::uint64_t sequence) const;  // describes this call and the previous call
  void compare(const ControlMessage& message) const;   // throws if the sender's call does not match
  [[noreturn]] void differs(int peer, std::uint64_t sequence, const std::string& theirs) const;

 private:
  struct Made {
    std::uint64_t sequence = 0, history = 0, signature = 0;
  };
  struct Known {
    std::uint64_t signature;
    std::string words;
  };
  int rank_;
  std::uint64_t calls_ = 0;
  std::array<Made, 64> made_{};
  std::vector<Known> known_;
};

}  // namespace chorale
