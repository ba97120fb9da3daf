// The cost of schedules, without running them: exact volumes, and the critical path over all ranks under α–β–γ.
//
// A message travels for α seconds, and each of its bytes takes β at the sender's port and β at the receiver's. A rank has
// one port per direction, and the two work independently. Sends queue at one; arrivals queue at the other, in order of
// arrival. A reduced byte takes γ; a rank reduces one step at a time. Copies are free, as in the textbooks: out of place,
// every algorithm makes the same one.
//
//   sender      ├─ bytes·β ─┤                      the send is over: its bytes have left the buffer
//   receiver    ·····α·····├─ bytes·β ─┤─ bytes·γ ─┤   the receive is over
//
// A step begins when the steps in its `after` are over. Messages that arrive earlier wait without blocking others. A send to
// several peers starts with the next rank, so that simultaneous senders load all ports evenly.
#pragma once
#include <cstdint>
#include <vector>

#include "collectives/analysis/rounds.hpp"
#include "collectives/price.hpp"

namespace chorale {

struct Volume {  // of one rank, exact
  std::int64_t messages_sent = 0, bytes_sent = 0, bytes_received = 0, bytes_reduced = 0;
  std::int64_t bytes_touched = 0;  // loads and stores, if receivers read the sender's memory directly
};
Volume volume(const Schedule& schedule, std::int64_t element_bytes);

struct Timeline {
  struct Transfer {
    Message message;
    double leaves = 0, is_in = 0;  // from the first byte at the sender to the last at the receiver
  };
  struct Span {
    double begins = 0, ends = 0;  // for a reduction, the arithmetic alone
  };
  double seconds = 0;                    // until the last rank is done
  std::vector<Transfer> transfers;       // in order of departure
  std::vector<std::vector<Span>> spans;  // by rank and step
};

Timeline simulate(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Price& price);

double predict(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Price& price);

// For another machine: ranks read each other's memory and share its bandwidth. α is the cost of a round's flags. β is the
// cost of a byte that any rank loads or stores, copies included. γ is as above, for the rank that reduces most.
double predict_mapped(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Price& price);

}  // namespace chorale
