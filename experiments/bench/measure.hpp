// One row measured: a series of calls between barriers, each timed by every rank; the time of a repetition is its slowest
// rank's.
//
//   all ranks   barrier ─ clock ─ call ─ clock ─ …        gathered when the series is over, never inside it
//
// Three calls of a series are checked, element by element, on every rank, outside the clock: before the barrier the input
// is filled and the output spoilt, after the second reading of the clock the result is compared.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/communicator.hpp"
#include "experiments/bench/buffers.hpp"
#include "experiments/bench/cases.hpp"
#include "experiments/bench/team.hpp"
#include "experiments/bench/values.hpp"

namespace chorale::bench {

struct How {
  std::int64_t repetitions =
      0;  // 0: 2000 of small calls, 200 of middle ones, 20 of large ones, half a second's worth at most
  std::int64_t warm_up = 5;
  bool check = true;
  bool ceiling = true;                       // also measure what memory allows, where it is mapped
  bool cold = false;                         // buffers that rotate through more than the last-level cache
  bool heap = false;                         // ordinary memory, where the backend has better
  std::shared_ptr<Memory> device = nullptr;  // where buffers lie, if not on the host
  bool compare_calls = true;                 // between ranks, as the communicator does unless it is told not to
  std::function<bool()> told_to_stop = {};   // asked on every rank, some ten times a second; none: nobody can stop it
};

// What rank 0 knows when a row is over. The others have an empty one.
struct Series {
  Case row;
  Choice choice;                           // what ran, when the row says auto
  std::vector<std::vector<double>> times;  // seconds, by rank and repetition
  std::vector<double> slowest;             // seconds, by repetition: the largest of the ranks'
  std::int64_t turn = 0;                   // its place in the order in which rows were measured
  std::int64_t wrong = -1;                 // elements of all ranks in all checked calls; −1: nothing was checked
  double bytes_sent = -1;                  // by all ranks together in one call; −1: nobody can count it
  double ceiling = -1;                     // seconds; −1: there is none
};

class Bench {
 public:
  Bench(Team& team, Communicator& world, const How& how);

  Series measure(const Case& row);           // on every rank
  bool stopped() const { return stopped_; }  // on every rank, once one was told to: the last series is of no use

 private:
  Communicator& communicator_for(const Case& row);
  Call call_of(const Case& row, const Problem& mine, std::int64_t i) const;
  void prepare(const Values& values, const Call& call, const Problem& mine) const;
  std::int64_t repetitions_for(double seconds, std::int64_t bytes) const;
  bool stop_now();
  struct Tally {  // what one rank brings home from a series
    std::vector<double> seconds;
    double wrong = -1, bytes_sent = -1;  // −1: not counted
  };
  Series gather(const Case& row, const Tally& tally);
  double ceiling_of(const Case& row, std::int64_t repetitions);

  Team& team_;
  Communicator& world_;
  Communicator apart_{nullptr};  // for native calls: after one of them, nobody can count a communicator's bytes
  How how_;
  HostMemory heap_;
  Ledger ledger_;
  Allocator ordinary_;
  Buffers buffers_;
  std::uint32_t round_ = 0;
  bool stopped_ = false;
};

}  // namespace chorale::bench
