// Plans a training without running it: the memory, the traffic and the flops of one step on any rank of any layout. The
// counts of a Trainer with the same arguments equal the plan exactly (parallel/plan/plan.hpp names the exceptions).
//
//   const RankPlan plan = plan_step(options, "dp2.tp2.z1", 4, 0);
//   plan.peak_bytes                      the peak memory of rank 0, in bytes
//   plan.axes.at("dp").entries[i]        calls and sent bytes of operation_name(i) along the axis dp
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>

#include <chorale/ledger.hpp>
#include <chorale/problem.hpp>
#include <chorale/tier_traffic.hpp>

namespace chorale {

struct TrainingOptions;

// The operations that are counted for each axis of the mesh: every collective, and point-to-point messages.
inline constexpr std::size_t messages = static_cast<std::size_t>(Collective::barrier) + 1;
inline constexpr std::size_t operations = messages + 1;
const char* operation_name(std::size_t operation);

// The bytes that this rank sends in one call.
struct Sent {
  std::int64_t bytes = 0;     // −1 if unknown, because a native collective (of MPI or NCCL) sends them
  std::int64_t crossing = 0;  // the part of `bytes` that is sent to other hosts, or −1 if unknown
  std::int64_t due = 0;       // in an all_to_all with counts: bytes of this rank's blocks for other ranks
};

struct Account {
  struct Entry {
    std::int64_t calls = 0;
    // Sums of the fields of Sent over all calls; −1: unknown for at least one call.
    std::int64_t bytes = 0, crossing = 0, due = 0;
    bool operator==(const Entry&) const = default;
  };
  std::array<Entry, operations> entries{};
  void add(std::size_t operation, const Sent& sent);
};
using Accounts = std::map<std::string, Account>;  // key: the name of the axis

struct RankPlan {
  std::int64_t parameters = 0;                          // number of parameters in this rank's stage and shard
  std::array<std::int64_t, categories> held{}, peak{};  // bytes by category
  // Bytes of all categories together. Categories can peak at different times, so peak_bytes can be less than the sum of
  // `peak`. peak_bytes is the sum of `at_peak`, the bytes of each category at the moment when the rank holds the most bytes.
  std::array<std::int64_t, categories> at_peak{};
  std::int64_t held_bytes = 0, peak_bytes = 0;
  Accounts axes;
  std::array<std::int64_t, categories> offloaded{};  // peak bytes in the offload tier, by category
  TierTraffic tier_passes, tier_updates;  // offload traffic of the forward and backward passes, and of the updates
  // Flops of the step, by the formula of ModelShape::flops_per_token. The flops of recomputation are not counted. If all
  // tensor-parallel ranks repeat some work, the flops of this work are divided among these ranks. So the flops of all ranks
  // add up to the model's flops.
  double flops = 0;
};

// Plans a step of one rank among `ranks` ranks, which are all on this host. `backend` and `algorithm` are the same as for a
// Trainer, and `auto` makes the choices of a Trainer on this host.
RankPlan plan_step(const TrainingOptions& options, const std::string& layout, int ranks, int rank,
                   const std::string& backend = "auto", const std::string& algorithm = "auto");

}  // namespace chorale
