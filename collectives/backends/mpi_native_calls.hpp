// The native calls of one group. MPI does not check that all ranks make the same native call. With mismatched calls, MPI
// would write beyond a buffer, return wrong results, or hang. So ranks compare the histories of their calls before MPI gets
// any buffer:
//
//   start      MPI_Iallreduce of (h, ¬h), maximum       every rank makes this call before any native call
//   later      equal: h = the maximum = the minimum     MPI begins the native call, in call order
//              unequal: no native call begins           control messages report each rank's call (call_agreement.hpp)
//
// Cost: an all-reduce of 16 bytes before each call. Benchmarks avoid this cost by turning off the comparison of calls
// (Communicator::check_calls).
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <memory>

#include "src/base/mpi.hpp"

namespace chorale {

class MpiNativeCalls {
 public:
  // `comparisons` is a separate communicator, because the order of comparisons and native calls can differ between ranks.
  MpiNativeCalls(mpi::Comm calls, mpi::Comm comparisons) : calls_(std::move(calls)), comparisons_(std::move(comparisons)) {}

  MPI_Comm comm() const { return calls_.get(); }
  void never_free() {
    calls_.release();
    comparisons_.release();
  }

  class Comparison {
   public:
    void start(MpiNativeCalls& among, std::uint64_t history);  // never waits
    bool is_over();                                            // whether all ranks have started this call
    bool agrees() const { return marks_->all[0] == ~marks_->all[1]; }
    bool may_begin() const { return among_->queue_.front() == this; }  // whether all earlier native calls have begun
    void begins() { among_->queue_.pop_front(); }
    ~Comparison();

   private:
    struct Marks {
      std::array<std::uint64_t, 2> mine, all;
      MPI_Request request = MPI_REQUEST_NULL;
    };
    MpiNativeCalls* among_ = nullptr;
    std::unique_ptr<Marks> marks_;  // leaked if MPI could still write to the marks
  };

 private:
  mpi::Comm calls_, comparisons_;
  std::deque<const Comparison*> queue_;
};

}  // namespace chorale
