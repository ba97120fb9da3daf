// A schedule made ready for memory that peers can map. A message needs no receiver's buffer and no sender's: the receiver looks into
// the sender's memory once the sender's step has happened. So a rank must know what the others do, and it does: their schedules
// are functions of the same problem.
//
//   send            shows that its data are there                        (small data are put on the board's stage)
//   recv            waits for the sender's step, copies
//   recv_reduce     waits for all of them, reduces straight from their memory
//   … and send      the sum that goes on to others is written to them too, in the same pass: then their recv only waits
//   put             is written to the receiver, whose recv only waits: where senders would idle while receivers copy
//
// What waits for a send locally waits for its readers to be done, unless it was staged.
#pragma once
#include <vector>

#include "collectives/schedule.hpp"

namespace chorale::mapped {

// A step of a rank of the group that must have happened.
struct Event {
  int rank;
  int step;
  bool only_if_read = false;  // needed only where the reader had to read for himself: the data were not written to him
};

// A range of some rank's memory.
struct Spot {
  int rank;  // of the group
  Place place;
  std::int64_t first;
  std::int64_t staged = -1;  // where it lies on that rank's stage, in elements
};

struct Action {
  Kind kind;
  std::int64_t count = 0;
  Spot into{};                  // of this rank: everything but sends
  std::vector<Spot> from;       // what is read; a send's one: what is staged
  std::vector<Spot> also_into;  // of others, who would send for it otherwise
  bool written = false;         // recv: its sender writes it, if he can map it; then there is nothing to wait for but him
  bool shown = false;           // somebody looks for this step
  std::vector<Event> events;    // whose data it takes
  std::vector<int> after;       // steps of this rank …
  std::vector<Event> readers;   // … and, where those are sends, their readers
};

struct Program {
  std::vector<Action> actions;
  std::vector<Event> at_the_end;  // others' steps that still read this rank's memory
  bool staged = false;            // all data that are sent pass over the stage
  std::int64_t scratch_count = 0;
};

constexpr std::int64_t never_staged = -1;
Program compile(const std::vector<Schedule>& ranks, int rank, std::int64_t stage_elements);

}  // namespace chorale::mapped
