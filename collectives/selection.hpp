// What `auto` runs: for a call on a backend, the algorithm that was fastest when it was measured on this machine, at the size nearest by
// ratio; where nothing was measured, the one that the cost model prices lowest.
//
//   call: shm, all_reduce of 20 KiB on 2 ranks, in place
//   table: 2 ranks, in place … 4 KiB one_shot, 32 KiB direct …      →  direct, "12 µs at 32768 bytes, ring takes 1.30 times as long"
//   none of 2 ranks?  ring 14 µs, direct 9 µs, … by α, β, γ         →  direct, "9 µs by the cost model, circulant takes …"
//
// The library's own collective ("native") may have been the fastest when it was measured, on small whole numbers. For calls where it gives
// other results than ours (`native_agrees`), its lines are skipped.
//
// Every rank must choose alike: give all of them the same table. One selector serves one rank: it remembers prices.
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
  std::string algorithm;  // a name of the table of algorithms, or "native"
  int chunks = 1;         // that its schedule is cut into
  std::string why;
  const Algorithm* own = nullptr;  // the caller's, which is in no table
};

// Seconds by the cost model; negative for what has no schedule: the library's own, and what does not fit.
double predict(const std::string& backend, const std::string& algorithm, int chunks, const Problem& problem,
               std::int64_t element_bytes, const Price& price);

// Whether the library's own collective gives what ours gives, whatever the values. Open MPI's sums of u8 saturate, where ours wrap. The min and
// max of MPI and NCCL lose a NaN, or keep it, by the ranks' order; ours always keep it. And MPI counts in an int.
bool native_agrees(const Problem& problem, DType dtype, Redop op);

class Selector {
 public:
  Selector() = default;                  // the cost model alone
  explicit Selector(TuningTable table);  // of another machine, it is not heard

  // `bytes` is the whole vector; `native_too`: lines that say native count. The first call of a kind may take milliseconds, later ones look
  // into a map.
  Choice choose(const std::string& backend, const Problem& problem, std::int64_t bytes, bool native_too) const;

  Price price(const std::string& backend) const;  // fitted here, or what is usual
  bool price_is_measured(const std::string& backend) const { return table_.prices.contains(backend); }

 private:
  using Kind =
      std::tuple<std::string, Collective, int, int, bool, int>;  // backend, …, ranks, a node's, in place, log₂ bytes
  const std::vector<Choice>& priced(const std::string& backend, const Problem& problem, std::int64_t bytes) const;

  TuningTable table_;
  mutable std::map<Kind, std::vector<Choice>> priced_;  // cheapest first
};

}  // namespace chorale
