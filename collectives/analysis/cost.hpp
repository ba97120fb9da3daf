// What schedules cost, without running them: exact volumes, and the critical path of all ranks under α–β–γ.
//
// A message is on its way for α seconds, and each of its bytes takes β at the port it leaves by and at the port it comes in by. A
// rank has one port for each direction: what it sends queues at one, what it gets (in the order of arrival) at the other, and the two
// do not hinder each other. A reduced byte takes γ; a rank reduces one step at a time. Copies are free, as in the textbooks: out of
// place every algorithm makes the same one.
//
//   sender      ├─ bytes·β ─┤                      its send is over: the bytes are out of its buffer
//   receiver    ·····α·····├─ bytes·β ─┤─ bytes·γ ─┤   its step is over
//
// A step begins when those in its `after` are over; what arrives earlier waits without hindering. A send to several goes to the
// next rank first, so that all who do so at once load every port evenly.
#pragma once
#include <cstdint>
#include <vector>

#include "collectives/analysis/rounds.hpp"
#include "collectives/price.hpp"

namespace chorale {

struct Volume {  // of one rank, exactly
  std::int64_t messages_sent = 0, bytes_sent = 0, bytes_received = 0, bytes_reduced = 0;
  std::int64_t bytes_touched = 0;  // loads and stores, where receivers read the sender's memory themselves
};
Volume volume(const Schedule& schedule, std::int64_t element_bytes);

struct Timeline {
  struct Transfer {
    Message message;
    double leaves = 0, is_in = 0;  // from the first byte at the sender to the last at the receiver
  };
  struct Span {
    double begins = 0, ends = 0;  // of a reduction: of the arithmetic alone
  };
  double seconds = 0;                    // until the last rank is through
  std::vector<Transfer> transfers;       // in the order in which they leave
  std::vector<std::vector<Span>> spans;  // by rank and step
};

Timeline simulate(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Price& price);

double predict(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Price& price);

// Another machine: ranks that read each other's memory, and all share its bandwidth. α is a round's flags, β a byte that anybody loads or
// stores, copies too; γ as above, for the rank that reduces most.
double predict_mapped(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Price& price);

}  // namespace chorale
