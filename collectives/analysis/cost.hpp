// Computes the cost of schedules without running them. The cost consists of the exact data volumes, and of the length of the
// critical path over all ranks in the α–β–γ model.
//
// A message has a latency of α seconds, and each of its bytes occupies the sender's port and the receiver's port for β
// seconds. A rank has a send port and a receive port, which work independently. A rank's sends queue at the send port.
// Incoming messages queue at the receive port, in order of arrival. Reducing a byte takes γ seconds; a rank reduces one step
// at a time. The model ignores copies, because every algorithm makes the same copy in an out-of-place call.
//
//   sender      ├─ bytes·β ─┤                      the send has completed: its bytes have left the buffer
//   receiver    ·····α·····├─ bytes·β ─┤─ bytes·γ ─┤   the receive has completed
//
// A step begins when all steps in its list `after` have completed. If a message arrives before its receive begins, the
// message waits without blocking other messages. A send to several peers starts with the peer after this rank, so that
// simultaneous senders load all ports evenly.
#pragma once
#include <cstdint>
#include <vector>

#include "collectives/analysis/price.hpp"
#include "collectives/analysis/rounds.hpp"

namespace chorale {

struct Volume {  // the data volume of one rank's schedule
  std::int64_t messages_sent = 0, bytes_sent = 0, bytes_reduced = 0;
  std::int64_t bytes_touched = 0;  // bytes that the rank loads and stores on mapped memory
};
Volume volume(const Schedule& schedule, std::int64_t element_bytes);

struct Timeline {
  struct Transfer {
    Message message;
    double leaves = 0, is_in = 0;  // the departure time of the first byte, and the arrival time of the last byte
  };
  struct Span {
    double begins = 0, ends = 0;  // start and end times of a step; for a reduction, only of its arithmetic
  };
  double seconds = 0;                    // time until the last rank has finished
  std::vector<Transfer> transfers;       // in order of departure
  std::vector<std::vector<Span>> spans;  // indexed by rank and step
};

Timeline simulate(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Price& price);

double predict(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Price& price);

// Predicts the time on mapped memory, where ranks read each other's memory and share the memory bandwidth. A round costs α.
// Each byte that any rank loads or stores costs β; copies count too. The first bytes stay in the caches of the cores and
// cost a share of β. Each byte that is reduced by the rank with the most reductions costs γ. The reductions of the other
// ranks are ignored, because they run in parallel.
inline constexpr std::int64_t bytes_in_caches = 256 << 10;
inline constexpr double cached_share = 0.25;
double predict_mapped(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Price& price);

}  // namespace chorale
