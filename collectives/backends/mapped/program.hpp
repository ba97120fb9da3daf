// A schedule compiled for memory that peers can map. A message needs no buffer of its own: the receiver reads the sender's
// memory once the sender's step has happened. So a rank must know the steps of the others. It does, because their schedules
// are functions of the same problem.
//
//   send            shows that its data are ready                        (small data are put on the board's stage)
//   recv            waits for the sender's step, copies
//   recv_reduce     waits for all senders, reduces directly from their memory
//   … and send      also writes the sum to the next receivers, in the same pass; their recv only waits
//   put             the sender writes to the receiver, whose recv only waits; for senders that would idle otherwise
//
// A local step that waits for a send waits until its readers are done, unless the data were staged.
#pragma once
#include <vector>

#include "collectives/schedule.hpp"

namespace chorale::mapped {

// A step of another rank that must have happened.
struct Event {
  int rank;
  int step;
  bool only_if_read = false;  // needed only if the reader had to read the data because they were not written to it
};

// A range of some rank's memory.
struct Spot {
  int rank;  // rank in the group
  Place place;
  std::int64_t first;
  std::int64_t staged = -1;  // its place on that rank's stage, in elements; −1: not staged
};

struct Action {
  Kind kind;
  std::int64_t count = 0;
  Spot into{};                  // on this rank; unused by sends
  std::vector<Spot> from;       // what is read; for a send: what is staged
  std::vector<Spot> also_into;  // on other ranks, which are written directly
  bool written = false;  // recv: the sender writes the data, if it can map the target; then only the sender is waited for
  bool shown = false;    // other ranks look for this step
  std::vector<Event> events;   // the senders' steps
  std::vector<int> after;      // steps of this rank …
  std::vector<Event> readers;  // … and, if those are sends, their readers
};

struct Program {
  std::vector<Action> actions;
  std::vector<Event> at_the_end;  // steps of others that still read this rank's memory
  bool staged = false;            // all sent data go through the stage
  std::int64_t scratch_count = 0;
};

constexpr std::int64_t never_staged = -1;
Program compile(const std::vector<Schedule>& ranks, int rank, std::int64_t stage_elements);

}  // namespace chorale::mapped
