// Measures one row: a series of calls with a barrier before each. Every rank times every call. The time of a repetition is
// that of its slowest rank.
//
//   all ranks   barrier ─ clock ─ call ─ clock ─ …        times are gathered after the series, never during it
//
// Three calls of a series are checked, element by element, on every rank. The input is filled and the output overwritten
// before the barrier, and the result is compared after the second clock reading.
//
// From time to time the ranks agree how long the series has taken so far. If calls take longer than in the warm-up, as they
// do when the machine becomes busy, fewer repetitions are left.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/communicator.hpp"
#include "experiments/bench/buffers.hpp"
#include "experiments/bench/cases.hpp"
#include "experiments/bench/team.hpp"
#include "experiments/bench/values.hpp"

namespace chorale::bench {

struct How {
  std::int64_t repetitions = 0;  // 0: 2000 small, 200 medium or 20 large calls; fewer if they take over half a second
  std::int64_t warm_up = 5;
  bool check = true;
  bool ceiling = true;                       // also measure the memory ceiling, where memory is mapped
  bool cold = false;                         // buffers rotate through more than the last-level cache
  bool heap = false;                         // ordinary memory, even if the backend has its own
  std::shared_ptr<Memory> device = nullptr;  // where the buffers are; none: on the host
  bool compare_calls = true;                 // ranks compare their calls, the communicator's default
  std::function<bool()> told_to_stop = {};   // called on every rank about ten times a second; none: cannot be stopped
};

// The result of a row on rank 0; empty on other ranks.
struct Series {
  Case row;
  Choice choice;                           // what ran if the row says auto
  std::vector<std::vector<double>> times;  // seconds, by rank and repetition
  std::vector<double> slowest;             // seconds, by repetition: the maximum over the ranks
  std::int64_t turn = 0;                   // position in the order of measurement
  std::int64_t wrong = -1;                 // wrong elements of all ranks in all checked calls; −1: not checked
  double bytes_sent = -1;                  // by all ranks in one call; −1: not countable
  double ceiling = -1;                     // seconds; −1: none
};

class Bench {
 public:
  Bench(Team& team, Communicator& world, const How& how);

  Series measure(const Case& row);           // on every rank
  bool stopped() const { return stopped_; }  // on every rank once any was told to stop; the last series is then invalid

 private:
  Communicator& communicator_for(const Case& row);
  Call call_of(const Case& row, const Problem& mine, std::int64_t i) const;
  void prepare(const Values& values, const Call& call, const Problem& mine) const;
  std::int64_t repetitions_for(double seconds, std::int64_t bytes) const;
  std::optional<double> look(double spent);
  struct Tally {  // one rank's results of a series
    std::vector<double> seconds;
    double wrong = -1, bytes_sent = -1;  // −1: not counted
  };
  Series gather(const Case& row, const Tally& tally);
  double ceiling_of(const Case& row, std::int64_t repetitions);

  Team& team_;
  Communicator& world_;
  Communicator apart_{nullptr};  // for native calls, after which a communicator cannot count its bytes
  How how_;
  HostMemory heap_;
  Ledger ledger_;
  Allocator ordinary_;
  Buffers buffers_;
  std::uint32_t round_ = 0;
  bool stopped_ = false;
};

}  // namespace chorale::bench
