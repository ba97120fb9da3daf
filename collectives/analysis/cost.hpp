// The cost of schedules, without running them: exact volumes, and the time of the critical path over all ranks in the α–β–γ
// model.
//
// A message travels for α seconds, and each of its bytes takes β seconds at the sender's port and at the receiver's. A rank
// has a port for sends and a port for receives, which work independently. A rank's sends wait in line at its send port.
// Arriving messages wait at the receive port, in order of arrival. Reducing a byte takes γ seconds; a rank reduces one step
// at a time. Copies are free, as in the textbooks, because out of place every algorithm makes the same copy.
//
//   sender      ├─ bytes·β ─┤                      the send is over: its bytes have left the buffer
//   receiver    ·····α·····├─ bytes·β ─┤─ bytes·γ ─┤   the receive is over
//
// A step begins when the steps in its `after` are over. Messages that arrive before their receive begins wait without
// blocking others. A send to several peers starts with the peer after this rank, so that simultaneous senders load all ports
// evenly.
#pragma once
#include <cstdint>
#include <vector>

#include "collectives/analysis/price.hpp"
#include "collectives/analysis/rounds.hpp"

namespace chorale {

struct Volume {  // what one rank's schedule moves
  std::int64_t messages_sent = 0, bytes_sent = 0, bytes_received = 0, bytes_reduced = 0;
  std::int64_t bytes_touched = 0;  // bytes that the rank loads and stores if receivers read the sender's memory directly
};
Volume volume(const Schedule& schedule, std::int64_t element_bytes);

struct Timeline {
  struct Transfer {
    Message message;
    double leaves = 0, is_in = 0;  // when the first byte leaves the sender, and when the last has reached the receiver
  };
  struct Span {
    double begins = 0, ends = 0;  // times of a step; for a reduction, only of its arithmetic
  };
  double seconds = 0;                    // until the last rank is done
  std::vector<Transfer> transfers;       // in order of departure
  std::vector<std::vector<Span>> spans;  // by rank and step
};

Timeline simulate(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Price& price);

double predict(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Price& price);

// The predicted time on mapped memory, where ranks read each other's memory and share its bandwidth. A round costs α. Each
// byte that any rank loads or stores costs β, copies included. Each byte reduced by the rank that reduces most costs γ.
double predict_mapped(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Price& price);

}  // namespace chorale
