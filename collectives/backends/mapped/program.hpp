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
// If a step waits for a send of the same rank, the step waits until the receivers have read the sent data. In an eager
// program, the step does not wait, because the sent data were copied to cells.
#pragma once
#include <limits>
#include <vector>

#include "collectives/schedule/step_graph.hpp"

namespace chorale::mapped {

// A step of a different rank, for which an action of this rank waits.
struct Event {
  int rank;
  int step;
  // The number of elements that this rank itself writes to the memory of `rank`, if it can access this memory; then there
  // is no wait. 0 if `rank` reads them.
  std::int64_t written = 0;
};

// The position of an element in the memory of any rank of the group.
struct Spot {
  int rank;  // rank in the group
  Place place;
  std::int64_t first;
  std::int64_t staged = -1;  // for sent data: their position in the stage of `rank`, in elements; −1 if too long for it
};

struct Action {
  Kind kind;
  std::int64_t count = 0;
  Spot into{};                  // the target on this rank; unused by sends
  std::vector<Spot> from;       // the sources; for a send, the data that it sends
  std::vector<Spot> also_into;  // targets on other ranks, to which this rank writes directly
  // For a recv. If true and the sender can write to this rank's output, the sender itself writes the data, and this action
  // only waits.
  bool written = false;
  // For a sum that a send forwards: the position in this rank's stage to which the sum is written too; or −1.
  std::int64_t also_staged = -1;
  // For a send: the data that it copies to the stage. `fill_count` is 0 if an earlier send or sum has copied them.
  Spot fill{};
  std::int64_t fill_count = 0;
  // Whether the flag page shows the completion of this step, because other ranks wait for the step.
  bool shown = false;
  std::vector<Event> events;   // steps of senders to wait for
  std::vector<int> after;      // steps of this rank to wait for
  std::vector<Event> readers;  // for each send in `after`, the receiving steps to wait for
};

struct Program {
  std::vector<Action> actions;
  std::vector<Event> at_the_end;  // steps in which other ranks read this rank's memory; the call ends after these steps
  std::int64_t scratch_count = 0;
  std::int64_t lines = 0;            // size of this rank's stage
  std::int64_t staged_elements = 0;  // StagingRule::most_elements
};

// The stage of a rank holds copies of the data that the rank sends, if its peers do not access its buffers. Each message
// begins at a line of the stage. The lines of small data are cells on the flag page (cell.hpp).
struct StagingRule {
  std::int64_t line_elements = 1;
  std::int64_t most_elements = std::numeric_limits<std::int64_t>::max();  // longer messages are not staged
  bool eager = false;  // the data of all ranks are staged, so no step waits for its readers
};
Program compile(const StepGraph& graph, int rank, StagingRule staging);

constexpr std::int64_t line_bytes = 64;  // the size of a line of a stage
// Whether all ranks send so little that their data fit into the cells of flag pages. If so, compile the program with
// cells_for.
bool is_eager(const std::vector<Schedule>& ranks, std::int64_t element_bytes);
StagingRule cells_for(std::int64_t element_bytes);

}  // namespace chorale::mapped
