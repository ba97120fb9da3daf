// Chooses the algorithm that `auto` runs. The tuning table lists the fastest algorithm on this machine for several sizes.
// `auto` takes the algorithm that the table lists for the size nearest to the call's size, on a logarithmic scale. If the
// table has no line for this number of ranks and hosts, `auto` runs the algorithm that the cost model predicts to be
// fastest. The cost model uses the prices of the machine file (prediction.hpp). If the machine file has no prices, the cost
// model uses the backend's typical prices.
//
//   call: shm, all_reduce of 20 KiB on 2 ranks, in place
//   table: 2 ranks, in place … 4 KiB one_shot, 32 KiB direct …   →  direct, "12 µs at 32768 bytes, ring took 1.30 times …"
//   no line for 2 ranks: ring 14 µs, direct 9 µs, … by prices    →  direct, "9 µs by the cost model"
//
// The tuning table can also have lines for "native", the collective of the backend's library. These lines are skipped if the
// results of the native collective could differ from the results of Chorale's algorithms (`native_agrees`).
//
// All ranks must choose the same algorithm, so all ranks must use the same table. A selector caches predictions, so each
// rank needs its own selector.
#pragma once
#include <chorale/algorithm.hpp>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <chorale/element.hpp>
#include "collectives/analysis/price.hpp"
#include "collectives/choice/tuning.hpp"
#include "collectives/prediction/work.hpp"
#include "collectives/schedule/side_by_side.hpp"
#include "src/base/host.hpp"
#include "src/base/machine_file.hpp"
#include "src/math/reduction.hpp"

namespace chorale {

// Returns the predicted time of an algorithm in seconds, from the given prices. Returns a negative number if the algorithm
// does not fit or has no schedule (native).
double predict(const std::string& backend, const std::string& algorithm, int chunks, const Problem& problem,
               std::int64_t element_bytes, const Price& price);

// The label of predicted times that are not based on prices of the machine file.
inline constexpr const char* not_calibrated = "not calibrated";

class Selector {
 public:
  Selector() = default;  // uses only typical prices
  // A table or machine file is ignored if it was measured on a machine other than `here`. All ranks of a run pass the
  // signature of rank 0's machine as `here`, so that all ranks make the same choices.
  explicit Selector(TuningTable table, Machine machine = {}, const std::string& here = machine_signature());

  // `bytes` is the size of the complete vector. `native_too`: whether the table's lines for "native" are considered too. The
  // first choice for a size without measurements can take milliseconds; later choices are a map lookup.
  Choice choose(const std::string& backend, const Problem& problem, std::int64_t bytes, bool native_too) const;

  // Returns the predicted time of an algorithm in seconds, or a negative number like the free function predict(). Uses the
  // prices of the machine file if is_calibrated(), otherwise typical prices. `all`: the groups that make this call at the
  // same time; `problem` is that of one group. Typical prices do not describe how groups share cores, so several groups are
  // predicted only by calibrated prices. Calls with work `beside` them are also predicted only by calibrated prices.
  double predict(const std::string& backend, const std::string& algorithm, int chunks, const Problem& problem, DType dtype,
                 const SideBySide& all = {}, const prediction::WorkBeside& beside = {}) const;
  bool is_calibrated(const std::string& backend, const Problem& problem) const;
  // The time of a barrier in seconds when the prices for this number of ranks and hosts were measured; negative if unknown.
  double usual_barrier(const std::string& backend, const Problem& problem) const;
  // The longest message of ordinary memory that is staged (machine file, staged_bytes). Negative if it is unknown, also if
  // only one of the two runs, this one and the measured one, has more ranks than cores.
  std::int64_t staged_bytes(const std::string& backend, int ranks) const;
  const Machine& machine() const { return machine_; }

 private:
  // The key of cached predictions: backend, collective, number of ranks, host of each rank, whether the call is in place,
  // and log₂ of the size in bytes.
  using Kind = std::tuple<std::string, Collective, int, std::vector<int>, bool, int>;
  const std::vector<Choice>& priced(const std::string& backend, const Problem& problem, std::int64_t bytes) const;

  TuningTable table_;
  Machine machine_;
  mutable std::map<Kind, std::vector<Choice>> priced_;  // the cost model's choices, fastest first
};

}  // namespace chorale
