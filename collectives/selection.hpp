// Chooses what `auto` runs: the algorithm measured fastest on this machine, at the measured size nearest by ratio. If
// nothing was measured, it is the one that the cost model prices lowest.
//
//   call: shm, all_reduce of 20 KiB on 2 ranks, in place
//   table: 2 ranks, in place … 4 KiB one_shot, 32 KiB direct …   →  direct, "12 µs at 32768 bytes, ring takes 1.30 times …"
//   none of 2 ranks?  ring 14 µs, direct 9 µs, … by α, β, γ      →  direct, "9 µs by the cost model"
//
// The native collective may have been measured fastest, on small integers. Its lines are skipped for calls where its results
// differ from ours (`native_agrees`).
//
// All ranks must choose alike, so give all of them the same table. A selector caches prices and serves one rank.
#pragma once
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "collectives/tuning.hpp"
#include "src/math/reduction.hpp"

namespace chorale {

struct Algorithm;

struct Choice {
  std::string algorithm;  // a name in the table of algorithms, or "native"
  int chunks = 1;         // of its schedule
  std::string why;
  const Algorithm* own = nullptr;  // the caller's own algorithm, outside the table
};

// Seconds by the cost model; negative if the algorithm does not fit or has no schedule (native).
double predict(const std::string& backend, const std::string& algorithm, int chunks, const Problem& problem,
               std::int64_t element_bytes, const Price& price);

// Whether the native collective gives the same results as ours, for all values. Open MPI's sums of u8 saturate; ours wrap.
// min and max of MPI and NCCL may lose a NaN, depending on rank order; ours always keep it. MPI limits counts to an int.
bool native_agrees(const Problem& problem, DType dtype, Redop op);

class Selector {
 public:
  Selector() = default;                  // the cost model alone
  explicit Selector(TuningTable table);  // ignored if it was measured on another machine

  // `bytes` is the size of the whole vector; `native_too` admits native lines. The first call of a kind may take
  // milliseconds; later ones are a map lookup.
  Choice choose(const std::string& backend, const Problem& problem, std::int64_t bytes, bool native_too) const;

  Price price(const std::string& backend) const;  // fitted here, or the backend's typical values
  bool price_is_measured(const std::string& backend) const { return table_.prices.contains(backend); }

 private:
  using Kind =
      std::tuple<std::string, Collective, int, int, bool, int>;  // backend, …, ranks, ranks per node, in place, log₂ bytes
  const std::vector<Choice>& priced(const std::string& backend, const Problem& problem, std::int64_t bytes) const;

  TuningTable table_;
  mutable std::map<Kind, std::vector<Choice>> priced_;  // cheapest first
};

}  // namespace chorale
