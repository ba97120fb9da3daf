// Measures one row of a benchmark, which is a series of calls with a barrier before each call. Every rank times every call.
// The time of a repetition is the time of its slowest rank.
//
//   all ranks   barrier ─ clock ─ call ─ clock ─ …        times are gathered after the series, never during it
//
// Every rank checks three calls of a series element by element: the first, one of the next few, and the last. In a checked
// call the rank fills the input and overwrites the output before the barrier. The rank checks the result after the second
// clock reading.
//
// About ten times a second, rank 0 tells the other ranks how long the series has taken so far. If other programs slow the
// calls, the series ends after fewer repetitions, unless the user gave the number of repetitions.
//
// With several groups (groups.hpp), all ranks pass the same barriers, and each group calls its own collective. The inputs of
// the groups differ, so data of another group count as wrong.
//
// Before each series, a few barriers are timed. The fastest barrier shows how fast the cores exchange data at that moment
// (barrier_time.hpp).
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/call/communicator.hpp"
#include "experiments/bench/beside.hpp"
#include "experiments/bench/buffers.hpp"
#include "experiments/bench/cases.hpp"
#include "experiments/bench/groups.hpp"
#include "experiments/bench/team.hpp"
#include "experiments/bench/values.hpp"

namespace chorale::bench {

struct How {
  std::int64_t repetitions = 0;  // if it is 0, as many as fit in 0.5 s (20–2000 below 64 KiB, 20–200 below 8 MiB, else 20)
  std::int64_t warm_up = 5;
  bool check = true;
  bool ceiling = true;                       // also measure the memory ceiling (ceiling.hpp), if peers' memory is mapped
  bool cold = false;                         // calls rotate through buffers that exceed the last-level cache
  bool heap = false;                         // buffers in ordinary memory, even if the backend has its own allocator
  std::shared_ptr<Memory> device = nullptr;  // device memory for the buffers; null if they are in host memory
  bool compare_calls = true;                 // ranks check that they all make the same call (Communicator::check_calls)
  bool beside_products = false;              // also measure the call beside matrix products (beside.hpp)
  Groups groups = {};                        // the groups that call at the same time
  std::function<bool()> told_to_stop = {};   // called on every rank about ten times a second; null if nothing can stop it
};

// The result of a row on rank 0; empty on other ranks.
struct Series {
  BenchCase row;
  Choice choice;                           // the algorithm and the chunks that ran
  std::vector<std::vector<double>> times;  // seconds, indexed by rank and repetition
  std::vector<double> slowest;             // time of each repetition in seconds: the maximum over the ranks
  std::int64_t turn = 0;                   // position in the order of measurement
  std::int64_t wrong = -1;                 // number of wrong elements on all ranks in all checked calls; −1: not checked
  double bytes_sent = -1;                  // bytes that all ranks of all groups sent in one call; −1: cannot be counted
  double ceiling = -1;                     // memory ceiling in seconds; −1: not measured
  double barrier = -1;                     // time of a barrier just before the series, in seconds; −1: unknown
  BesideTimes beside = {};                 // not measured unless the user asked for it
  double closed_form = -1;                 // time of a simulated call by the planner's closed form, in seconds; −1: none
};

class Bench {
 public:
  // `team`: all ranks. `group`: the ranks that call a collective together, one of `how.groups`.
  Bench(BenchTeam& team, Communicator& group, const How& how);

  Series measure(const BenchCase& row);      // on every rank
  bool stopped() const { return stopped_; }  // same on all ranks; if true, the last series is empty

 private:
  Communicator& communicator_for(const BenchCase& row);
  Call call_of(const BenchCase& row, const Problem& mine, std::int64_t i) const;
  void prepare(const Values& values, const Call& call, const Problem& mine) const;
  std::int64_t repetitions_for(double seconds, std::int64_t bytes) const;
  std::optional<double> look(double spent);
  double barrier_seconds();
  std::uint32_t group_number() const { return static_cast<std::uint32_t>(how_.groups.of(team_.rank(), team_.size())); }
  struct Tally {  // one rank's results of a series
    std::vector<double> seconds;
    double wrong = -1, bytes_sent = -1;  // −1: not counted
  };
  Series gather(const BenchCase& row, const Tally& tally);
  double ceiling_of(const BenchCase& row, std::int64_t repetitions);
  Values next_values(const BenchCase& row);
  static std::int64_t calls_until_look(double average, std::int64_t done);
  void measure_beside(const BenchCase& row, Series& series);  // this function and the next two: beside.cpp
  std::int64_t products_for(double seconds);
  void run_beside(Communicator& communicator, const Call& call, std::int64_t products, std::vector<double>& times);

  BenchTeam& team_;
  Communicator& group_;
  Communicator apart_{nullptr};  // used for native calls only, because they end a communicator's count of bytes
  How how_;
  HostMemory heap_;
  Ledger ledger_;
  Allocator ordinary_;
  Buffers buffers_;
  std::optional<ProductsBeside> products_;  // null until the first row is measured beside products
  std::uint32_t round_ = 0;
  bool stopped_ = false;
};

}  // namespace chorale::bench
