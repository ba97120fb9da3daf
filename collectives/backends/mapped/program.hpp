// A Program is the compiled form of a schedule, for backends with mapped memory. A message needs no buffer: the receiver
// reads the sender's memory once the sender's step is done. So a rank must know the steps of all ranks. The rank computes
// these steps itself, because all schedules are functions of the same problem.
//
//   send                     shows that its data are ready; small data are copied to this rank's flag page (flag_page.hpp)
//   recv                     waits for the sender's step, then copies the data
//   recv_reduce              waits for all senders, then reduces directly from their memory
//   recv_reduce, then send   also writes the sum to the receivers' memory, in the same pass; the recv only waits
//   put                      writes to the receiver's memory; the recv only waits; for senders that would be idle
//
// If a step waits for a send of the same rank, the step waits until the receivers have read the sent data. If the sent data
// were staged (copied to the flag page), the step need not wait.
#pragma once
#include <vector>

#include <chorale/schedule.hpp>

namespace chorale::mapped {

// A step of a different rank, for which an action of this rank waits.
struct Event {
  int rank;
  int step;
  bool only_if_read = false;  // if true, there is no wait if this rank itself wrote the data to the memory of `rank`
};

// The position of an element in the memory of any rank of the group.
struct Spot {
  int rank;  // rank in the group
  Place place;
  std::int64_t first;
  std::int64_t staged = -1;  // offset in the staging buffer of the rank's flag page, in elements, or −1 if not staged
};

struct Action {
  Kind kind;
  std::int64_t count = 0;
  Spot into{};                  // the target on this rank; unused by sends
  std::vector<Spot> from;       // the sources; for a send, the data that it sends
  std::vector<Spot> also_into;  // targets on other ranks, to which this rank writes directly
  // For a recv. If true and the sender has mapped this rank's output, the sender itself writes the data, and this action
  // only waits.
  bool written = false;
  // Whether the flag page shows the completion of this step, because other ranks wait for the step.
  bool shown = false;
  std::vector<Event> events;   // steps of senders to wait for
  std::vector<int> after;      // steps of this rank to wait for
  std::vector<Event> readers;  // for each send in `after`, the receiving steps to wait for
};

struct Program {
  std::vector<Action> actions;
  std::vector<Event> at_the_end;  // steps in which other ranks read this rank's memory; the call ends after these steps
  bool staged = false;            // all sent data are copied to the staging buffers of flag pages
  std::int64_t scratch_count = 0;
};

constexpr std::int64_t never_staged = -1;  // the value of `stage_elements` with which no data are staged
// Compiles the program of `rank`. Data are staged if each rank sends at most `stage_elements` elements.
Program compile(const std::vector<Schedule>& ranks, int rank, std::int64_t stage_elements);

}  // namespace chorale::mapped
