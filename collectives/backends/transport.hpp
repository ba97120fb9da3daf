// What a backend offers: a Transport joins a rank to all others of the world, a Group is a set of them that call collectives
// together, and an Operation is one collective of one group, prepared once and run many times.
//
//   Communicator ── holds ── Group ── prepares ── Operation          start(buffers) … progress() … progress() → true
//                              └── of one Transport (mpi, ucx, shm, threads, nccl)
//
// A backend that carries messages gives its two verbs (post, test) to MessageOperation, which runs any schedule over them; memory
// that peers can map is run by MappedOperation, where a message is a look into the other's memory.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/algorithms.hpp"
#include "src/math/reduction.hpp"
#include "src/memory/memory.hpp"

namespace chorale {

// What an operation is prepared for.
struct Plan {
  const Algorithm* algorithm = nullptr;  // nullptr: the library's own, "native"
  Problem problem;
  std::vector<Problem> problems = {};  // of all ranks, where they are not `problem.at(rank)`: an uneven all_to_all
  DType dtype = DType::f32;
  Redop op = Redop::sum;        // avg is a sum here …
  bool divide = false;          // … that is divided at the end: on a device by the operation, else by the communicator
  bool on_device = false;       // where the buffers are
  int chunks = 1;               // that the schedule is cut into, so that they follow one another
  std::uint64_t signature = 0;  // of the call; equal on all ranks; 0: not compared
  std::string words;            // "all_reduce ring of 16 f32, sum", for errors
};

// Of all its ranks, cut into the plan's chunks.
std::vector<Schedule> schedules_of(const Plan& plan);

// One run of an operation.
struct Run {
  void *input = nullptr, *output = nullptr;
  std::uint64_t sequence = 0;  // counts the group's calls from 1, alike on all its ranks
  std::uint64_t history = 0;   // of the signatures of this call and all before it; equal on all ranks; 0: not checked
  bool blocking = false;       // the caller does nothing else until it is over
};

class Operation {
 public:
  virtual ~Operation() = default;
  // Enqueues the device work that start() depends on. start() is called once that work is done and all earlier calls of the
  // group have started.
  virtual void await_input(const void* /*input*/) {}
  virtual bool input_is_there() { return true; }  // does not wait
  virtual void start(const Run& run) = 0;         // the one before must be over
  // Goes as far as it can without waiting; true when the run is over. Throws when it failed.
  virtual bool progress() = 0;
  virtual std::uint64_t moved() const { return 0; }  // steps done so far: who waits sees that it goes on
  // Nothing has moved for a while: throws if a peer called something else, or gave up.
  virtual void examine() {}

  // After an error (abandoned_operations.hpp). The run will not end: takes back what can be taken back. The two questions then go as far as they can
  // without waiting.
  virtual void abandon() noexcept {}
  virtual bool may_be_written() noexcept { return false; }  // by a message, or a peer, to this run's buffers
  virtual bool may_be_read() noexcept { return false; }
};

class Group {
 public:
  virtual ~Group() = default;
  virtual std::unique_ptr<Operation> prepare(const Plan& plan) = 0;
  // The group of two that carries what `from` sends to `to`, one of which is this rank; made without asking the other.
  virtual std::unique_ptr<Group> pair(int from, int to) = 0;
  // This rank gives up, and its calls on this group have been abandoned: a peer that waits for it is told why, when it examines.
  virtual void poison(const std::string& why) noexcept = 0;
  // This rank has given up, and no message will be written to its buffers any more.
  virtual void close() noexcept {}
  // This rank makes no more calls here, and all its calls are over. A peer that waits for a further call is told when it
  // examines. Throws if this rank sees that a member made other calls. Not called after poison.
  virtual void leave() {}
};

struct Membership {
  std::vector<int> members;          // ranks of the world, in the group's order
  int rank = 0;                      // this rank's place among them
  std::uint32_t id = 0;              // no two living groups that share a rank have the same
  std::vector<std::int64_t> offers;  // what each member's offer() gave
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual const char* name() const = 0;  // of its row in the table of backends
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual bool has_native(Collective) const { return false; }
  // Whether it takes buffers on the host, or on a device, as they are; and whether its own collectives do. Else they are staged.
  virtual bool reaches(bool on_device, bool /*native*/) const { return !on_device; }
  virtual void use_device(const std::shared_ptr<Memory>& /*memory*/) {}  // where buffers will lie, if not on the host
  virtual Memory& memory() = 0;  // what peers reach fastest: mapped by all of them, where there is such memory
  virtual std::string about_memory() const { return ""; }  // what a record should say of it: "registered with NCCL"

  // Set-up, on all ranks of the world at once: everybody's number, in rank order.
  virtual std::vector<std::int64_t> exchange(std::int64_t mine) = 0;
  // Called while a group of so many members is made; the result goes to all of them. Mapped memory: where this rank's board
  // lies. Messages: this rank's number of the group.
  virtual std::int64_t offer(int /*members*/) { return 0; }
  // Whether an operation must know what the other ranks do, and not only what this one does.
  virtual bool plans_for_all() const { return false; }
  virtual std::unique_ptr<Group> join(const Membership& membership) = 0;
  // Whether all members of the groups that this rank left are known to have left too. Throws if their calls were not this rank's.
  virtual bool all_left() { return true; }
};

}  // namespace chorale
