// The interface of a backend. A Transport connects a rank to all others of the world. A Group is a set of ranks that call
// collectives together. An Operation is one collective of one group, prepared once and run many times.
//
//   Communicator ── holds ── Group ── prepares ── Operation          start(buffers) … progress() … progress() → true
//                              └── of one Transport (mpi, ucx, shm, threads, nccl)
//
// Backends that send messages implement a Messenger (post, progress); MessageOperation runs any schedule over it. Where
// peers can map memory, MappedOperation runs schedules, and a message is a read of the sender's memory.
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

// The call that an operation is prepared for.
struct Plan {
  const Algorithm* algorithm = nullptr;  // null: the library's own, "native"
  Problem problem;
  std::vector<Problem> problems = {};  // of all ranks, if they differ from `problem.at(rank)`: an uneven all_to_all
  DType dtype = DType::f32;
  Redop op = Redop::sum;        // avg is computed as a sum …
  bool divide = false;          // … and divided at the end: on a device by the operation, otherwise by the communicator
  bool on_device = false;       // where the buffers are
  int chunks = 1;               // the schedule is cut into this many, which overlap
  std::uint64_t signature = 0;  // of the call, equal on all ranks; 0: not compared
  std::string words;            // "all_reduce ring of 16 f32, sum", for errors
};

// The schedules of all ranks, cut into the plan's chunks.
std::vector<Schedule> schedules_of(const Plan& plan);

// One run of an operation.
struct Run {
  void *input = nullptr, *output = nullptr;
  std::uint64_t sequence = 0;  // counts the group's calls from 1, equal on all ranks
  std::uint64_t history = 0;   // hash of the signatures of all calls up to this one, equal on all ranks; 0: not checked
  bool blocking = false;       // the caller waits for it at once
};

class Operation {
 public:
  virtual ~Operation() = default;
  // Enqueues the device work that start() depends on. start() is called once that work is done and all earlier calls of the
  // group have started.
  virtual void await_input(const void* /*input*/) {}
  virtual bool input_is_there() { return true; }  // does not wait
  virtual void start(const Run& run) = 0;         // the previous run must be over
  // Proceeds as far as possible without waiting; true when the run is over. Throws if it failed.
  virtual bool progress() = 0;
  virtual std::uint64_t moved() const { return 0; }  // steps done so far: shows a waiting rank that the run proceeds
  // Called when nothing has moved for a while: throws if a peer made another call or gave up.
  virtual void examine() {}

  // After an error (abandoned_operations.hpp): the run will not end. abandon() takes back what it can. The two questions
  // proceed as far as possible without waiting.
  virtual void abandon() noexcept {}
  virtual bool may_be_written() noexcept { return false; }  // a message or a peer may still write to this run's buffers
  virtual bool may_be_read() noexcept { return false; }
};

class Group {
 public:
  virtual ~Group() = default;
  virtual std::unique_ptr<Operation> prepare(const Plan& plan) = 0;
  // The group of two for messages from `from` to `to`, one of which is this rank. Created without asking the other.
  virtual std::unique_ptr<Group> pair(int from, int to) = 0;
  // Tells peers that this rank gives up; its calls on this group have been abandoned. A waiting peer learns the reason in
  // examine().
  virtual void poison(const std::string& why) noexcept = 0;
  // Tells peers that this rank has given up and that no message will be written to its buffers any more.
  virtual void close() noexcept {}
  // Tells peers that all calls of this rank are over and that it makes no more. A peer that waits in a later call learns
  // this in examine(). Throws if this rank sees that a member made other calls. Not called after poison().
  virtual void leave() {}
};

struct Membership {
  std::vector<int> members;          // ranks of the world, in the group's order
  int rank = 0;                      // this rank's index among them
  std::uint32_t id = 0;              // unique among the living groups of each rank
  std::vector<std::int64_t> offers;  // each member's offer()
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual const char* name() const = 0;  // its row in the table of backends
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual bool has_native(Collective) const { return false; }
  // Whether schedules (or its native collectives) accept buffers on the host or on a device as they are. Otherwise the
  // buffers are staged.
  virtual bool reaches(bool on_device, bool /*native*/) const { return !on_device; }
  virtual void use_device(const std::shared_ptr<Memory>& /*memory*/) {}  // where buffers will lie, if not on the host
  virtual Memory& memory() = 0;  // what peers reach fastest: memory that all of them map, if there is any
  virtual std::string about_memory() const { return ""; }  // for records, e.g. "registered with NCCL"

  // Set-up, collective over the world: gathers one number from each rank, in rank order.
  virtual std::vector<std::int64_t> exchange(std::int64_t mine) = 0;
  // Called while a group of `members` ranks is created; all of them receive the result. Mapped memory: where this rank's
  // board lies. Messages: this rank's number for the group.
  virtual std::int64_t offer(int /*members*/) { return 0; }
  // Whether an operation needs the plans of all ranks, not only this rank's.
  virtual bool plans_for_all() const { return false; }
  virtual std::unique_ptr<Group> join(const Membership& membership) = 0;
  // Whether all members of the groups that this rank left are known to have left too. Throws if their calls differed from
  // this rank's.
  virtual bool all_left() { return true; }
};

}  // namespace chorale
