// The interface of a backend. A Transport connects a rank to all others of the world. A Group is a set of ranks that call
// collectives together. An Operation is one collective of one group, prepared once and run many times.
//
//   Communicator ── holds ── Group ── prepares ── Operation          start(buffers) … progress() … progress() → true
//                              └── of one Transport (mpi, ucx, shm, shm+ucx, threads, nccl)
//
// A backend that sends messages implements a Messenger (post, progress); MessageOperation runs any schedule over a
// Messenger. On memory that peers can map, MappedOperation runs schedules, and the receiver of a message reads the sender's
// memory.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <chorale/algorithm.hpp>
#include "src/math/reduction.hpp"
#include "src/memory/memory.hpp"

namespace chorale {

// The call that an operation is prepared for.
struct Plan {
  const Algorithm* algorithm = nullptr;  // null: the library's own collective, "native"
  Problem problem;
  std::vector<Problem> problems = {};  // of all ranks, if rank r's is not problem.at(r), as in an uneven all_to_all
  DType dtype = DType::f32;
  Redop op = Redop::sum;   // for an average, this is sum
  bool divide = false;     // the sum is divided at the end: on a device by the operation, on the host by the communicator
  bool on_device = false;  // whether the buffers are on a device
  int chunks = 1;          // the schedule is cut into this many chunks, which overlap
  std::uint64_t signature = 0;  // hash of what must be equal on all ranks; 0: calls are not compared
  std::string words;            // the call in words, for errors: "all_reduce of 16 f32, sum, ring"
};

// The schedules of all ranks, cut into the plan's chunks.
std::vector<Schedule> schedules_of(const Plan& plan);

// The arguments of one run of an operation.
struct Run {
  void *input = nullptr, *output = nullptr;
  std::uint64_t sequence = 0;  // counts the group's calls from 1, equal on all ranks
  std::uint64_t history = 0;   // hash of the signatures of all calls up to this one, equal on all ranks; 0: not compared
  bool blocking = false;       // the caller waits at once, so start() may block in the library
};

class Operation {
 public:
  virtual ~Operation() = default;
  // Enqueues the device work that start() depends on. start() is called once that work is done and all earlier calls of the
  // group have started.
  virtual void await_input(const void* /*input*/) {}
  virtual bool input_is_there() { return true; }  // whether that work is done
  virtual void start(const Run& run) = 0;         // the previous run must be over
  // Makes as much progress as possible without waiting. Returns true when the run is over. Throws if the run failed.
  virtual bool progress() = 0;
  virtual std::uint64_t moved() const {
    return 0;
  }  // number of completed steps; shows a waiting rank that there is progress
  // The next two functions are called when there has been no progress for a while. The first throws if a peer made a
  // different call or gave up. The second returns the member that must act next; −1: unknown.
  virtual void examine() {}
  virtual int awaits() { return -1; }

  // Called after an error, when the run will not complete (abandoned_operations.hpp). abandon() cancels what can be
  // canceled. The two functions after it also make progress without waiting.
  virtual void abandon() noexcept {}
  virtual bool may_be_written() noexcept { return false; }  // whether a message or a peer may still write to the buffers
  virtual bool may_be_read() noexcept { return false; }     // whether a message or a peer may still read the buffers
};

class Group {
 public:
  virtual ~Group() = default;
  virtual std::unique_ptr<Operation> prepare(const Plan& plan) = 0;
  // The pair: a group of two ranks for messages from `from` to `to`, one of which is this rank. This rank creates it without
  // waiting for the other rank.
  virtual std::unique_ptr<Group> pair(int from, int to) = 0;
  // Tells peers that this rank gives up, and why. This rank has already abandoned its calls on this group. A waiting peer
  // learns the reason in examine().
  virtual void poison(const std::string& why) noexcept = 0;
  // Called after poison(). Tells peers that no message will be written to this rank's buffers any more.
  virtual void close() noexcept {}
  // Tells peers that all calls of this rank are over and that it makes no more calls. A peer that waits in a later call
  // learns this in examine(). Throws if this rank detects that a member made different calls. Not called after poison().
  virtual void leave() {}
};

struct Membership {
  std::vector<int> members;          // ranks of the world, in the group's order
  int rank = 0;                      // this rank's index in `members`
  std::uint32_t id = 0;              // unique among the groups that a rank is in; reused once the group is gone
  std::vector<std::int64_t> offers;  // each member's offer()
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual const char* name() const = 0;  // as in the table of backends
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual bool has_native(Collective) const { return false; }
  // Whether schedules can work directly on host buffers. `on_device` asks about device buffers instead, and `native` about
  // the library's own collectives instead of schedules. Buffers that are not reached are copied to bounce buffers
  // (staged_operation.hpp).
  virtual bool reaches(bool on_device, bool /*native*/) const { return !on_device; }
  virtual void use_device(const std::shared_ptr<Memory>& /*memory*/) {}  // sets the device where callers' buffers may lie
  virtual Memory& memory() = 0;  // the memory that peers access fastest: memory that all of them map, if there is any
  virtual std::string about_memory() const { return ""; }  // for records, e.g. "registered with NCCL"

  // Gathers one number from each rank, in rank order. Collective over the world; used only for set-up.
  virtual std::vector<std::int64_t> exchange(std::int64_t mine) = 0;
  // Called while a group of `members` ranks is created. All members receive the result: on mapped memory the location of
  // this rank's flag page (mapped/flag_page.hpp), otherwise this rank's number for the group (message/control.hpp).
  virtual std::int64_t offer(int /*members*/) { return 0; }
  // Whether preparing an operation needs the plans of all ranks, not only this rank's.
  virtual bool plans_for_all() const { return false; }
  virtual std::unique_ptr<Group> join(const Membership& membership) = 0;
  // For the groups that this rank has left: whether it knows that all other members have left too. Throws if a member's
  // calls differed from this rank's calls.
  virtual bool all_left() { return true; }
};

}  // namespace chorale
