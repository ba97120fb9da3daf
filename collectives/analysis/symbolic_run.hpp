// Runs the schedules of all ranks in one process, one round at a time, on symbols instead of values. The symbol of a buffer
// element consists of an index in the complete vector and of the sum that the element holds. A symbolic run does not prove
// that the schedules are correct, so check the schedules first (checker.hpp).
#pragma once
#include <map>
#include <tuple>

#include "collectives/analysis/expressions.hpp"
#include "collectives/analysis/flow.hpp"
#include "collectives/analysis/rounds.hpp"

namespace chorale {

struct SymbolicValue {
  std::int64_t element = -1;  // index in the contributing ranks' vectors, or −1 if not written yet
  int sum = -1;               // an expression (expressions.hpp)
};

class SymbolicRun {
 public:
  SymbolicRun(const std::vector<Schedule>& ranks, Expressions& sums);  // runs round 0; both arguments must outlive the run

  const Rounds& rounds() const { return rounds_; }
  int round() const { return round_; }  // the last completed round
  void next_round();

  std::int64_t count(int rank, Place place) const;
  const SymbolicValue& at(int rank, Place place, std::int64_t i) const {
    const auto r = static_cast<std::size_t>(rank);
    return memory_[r].at(lineups_[r].at(place, i));
  }

 private:
  using Values = std::vector<SymbolicValue>;
  void play();
  Values read(int rank, const Range& range) const;
  void store(int rank, int step);

  const std::vector<Schedule>& ranks_;
  Expressions& sums_;
  Rounds rounds_;
  int round_ = 0;
  std::vector<Lineup> lineups_;
  std::vector<Values> memory_;
  std::map<std::tuple<int, int>, std::map<int, Values>> mail_;  // (receiver, receiver's step) → sender → the values sent
};

}  // namespace chorale
