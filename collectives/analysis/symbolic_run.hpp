// Runs the schedules of all ranks in one process, one round at a time. For every element of every buffer it records which
// element of the whole vector it is, and the sum that it holds. It proves nothing: check the schedules first (checker.hpp).
#pragma once
#include <map>
#include <tuple>

#include "collectives/analysis/expressions.hpp"
#include "collectives/analysis/flow.hpp"
#include "collectives/analysis/rounds.hpp"

namespace chorale {

struct SymbolicValue {
  std::int64_t element = -1;  // its index in the contributing ranks' vector; −1: not written yet
  int sum = -1;
};

class SymbolicRun {
 public:
  SymbolicRun(const std::vector<Schedule>& ranks, Expressions& sums);  // both must outlive it; round 0 is over afterwards

  const Rounds& rounds() const { return rounds_; }
  int round() const { return round_; }  // the last round that is over
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
  std::map<std::tuple<int, int>, std::map<int, Values>> mail_;  // (rank, step) → sender → what it sent
};

}  // namespace chorale
