// The interface of a backend. A Transport connects a rank to all other ranks of the world. A Group is a set of ranks that
// call collectives together. An Operation is a collective of a group. An Operation is prepared once and can run many times.
//
//   Communicator ── holds ── Group ── prepares ── Operation          start(buffers) … progress() … progress() → true
//                              └── of one Transport (mpi, ucx, shm, shm+ucx, threads, nccl)
//
// A backend that sends messages implements a Messenger (post, progress), and MessageOperation runs any schedule over a
// Messenger. If peers can map each other's memory, MappedOperation runs schedules, and the receiver of a message reads the
// sender's memory.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <chorale/algorithm.hpp>
#include "src/math/reduction.hpp"
#include "src/memory/memory.hpp"

namespace chorale {

// The call for which an operation is prepared.
struct Plan {
  const Algorithm* algorithm = nullptr;  // null for "native", the collective of the backend's library
  Problem problem;
  std::vector<Problem> problems =
      {};  // for an uneven all_to_all, the problems of all ranks; if it is empty, the problem of rank r is `problem.at(r)`
  DType dtype = DType::f32;
  Redop op = Redop::sum;  // for an average, this is Redop::sum
  // Whether the result is an average; the operation (device buffers) or the communicator (host buffers) divides the sum.
  bool divide = false;
  bool on_device = false;       // whether the caller's buffers are on a device
  int chunks = 1;               // number of chunks into which the schedule is split; chunks overlap in time
  std::uint64_t signature = 0;  // hash of the arguments that must be equal on all ranks, or 0 if not compared
  std::string words;            // describes the call in errors: "all_reduce of 16 f32, sum, ring"
};

// Returns the schedules of all ranks, split into the plan's chunks.
std::vector<Schedule> schedules_of(const Plan& plan);

// The arguments of one run of an operation.
struct Run {
  void *input = nullptr, *output = nullptr;
  std::uint64_t sequence = 0;  // number of the call in the group, counted from 1; equal on all ranks
  std::uint64_t history = 0;   // hash of the signatures of all calls up to this call, equal on all ranks; 0 if not compared
  // If true, the caller waits for the call immediately, so start() may block in the communication library.
  bool blocking = false;
};

class Operation {
 public:
  virtual ~Operation() = default;
  // Enqueues the device work that start() depends on. start() is called once that work is done and all earlier calls of the
  // group have started.
  virtual void await_input(const void* /*input*/) {}
  virtual bool input_is_there() { return true; }  // whether the device work of await_input() has completed
  virtual void start(const Run& run) = 0;         // requires that the previous run has completed
  // Makes as much progress as possible without waiting. Returns true when the run has completed. Throws if the run failed.
  virtual bool progress() = 0;
  // Returns the number of completed steps. A waiting rank treats a change of this number as progress.
  virtual std::uint64_t moved() const { return 0; }
  // A waiting rank calls examine() and awaits() when there has been no progress for a while. examine() throws if a peer made
  // a mismatched call or gave up. awaits() returns the member that this rank waits for, or −1 if this member is unknown.
  virtual void examine() {}
  virtual int awaits() { return -1; }

  // These functions are called after an error, when the run will not complete (abandoned_operations.hpp). abandon() cancels
  // as much of the call as can be canceled. may_be_written() and may_be_read() also make progress without waiting.
  virtual void abandon() noexcept {}
  virtual bool may_be_written() noexcept { return false; }  // whether a message or a peer could still write to the buffers
  virtual bool may_be_read() noexcept { return false; }     // whether a message or a peer could still read the buffers
};

class Group {
 public:
  virtual ~Group() = default;
  virtual std::unique_ptr<Operation> prepare(const Plan& plan) = 0;
  // Creates a pair, which is a group of two ranks for point-to-point messages from rank `from` to rank `to`. This rank must
  // be one of the two ranks. This rank creates its side of the pair without waiting for the other rank.
  virtual std::unique_ptr<Group> pair(int from, int to) = 0;
  // Tells peers that this rank gives up, and gives the reason. Before this call, this rank must have abandoned its calls on
  // this group. A waiting peer gets the reason in examine().
  virtual void poison(const std::string& why) noexcept = 0;
  // Called after poison(). Tells peers that incoming messages no longer write to this rank's buffers.
  virtual void close() noexcept {}
  // Tells peers that all calls of this rank have completed and that this rank makes no more calls. If a peer waits in a
  // later call, the peer's examine() throws. Throws if this rank detects that a member made mismatched calls. Not called
  // after poison().
  virtual void leave() {}
};

struct Membership {
  std::vector<int> members;          // world ranks, in group order
  int rank = 0;                      // this rank's index in `members`
  std::uint32_t id = 0;              // unique among a rank's current groups; reused later
  std::vector<std::int64_t> offers;  // the result of each member's offer()
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual const char* name() const = 0;  // the name in the table of backends
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual bool has_native(Collective) const { return false; }
  // Whether a call can access its buffers directly. `on_device`: the buffers are on a device, otherwise on the host.
  // `native`: the call runs the collective of the backend's library instead of a schedule. If the result is false, buffers
  // are copied to bounce buffers (staged_operation.hpp).
  virtual bool reaches(bool on_device, bool /*native*/) const { return !on_device; }
  virtual void use_device(const std::shared_ptr<Memory>& /*memory*/) {}  // sets the device of callers' buffers
  virtual Memory& memory() = 0;  // the memory with the fastest access for peers: mapped by all ranks if possible
  // Sets the length of messages of ordinary memory up to which they are staged in mapped memory. The kernel copies longer
  // messages. A negative length means the usual one. Operations that are already prepared keep their length. The length must
  // be equal on all ranks.
  virtual void stage_up_to(std::int64_t /*bytes*/) {}
  virtual void share_cores() {}  // called on all ranks, before stage_up_to(), if some ranks share cores
  virtual std::string about_memory() const { return ""; }  // a description for run records, e.g. "registered with NCCL"

  // Gathers one number from each rank, in rank order. All ranks of the world must call this function; it is used only during
  // set-up.
  virtual std::vector<std::int64_t> exchange(std::int64_t mine) = 0;
  // Called on each member while a group of `members` ranks is created. All members receive the results of all members. On
  // mapped memory, the result is the location of this rank's flag page (mapped/flag_page.hpp). On other backends, the result
  // is this rank's number for the group (message/control.hpp).
  virtual std::int64_t offer(int /*members*/) { return 0; }
  // Whether the preparation of an operation needs the plans of all ranks.
  virtual bool plans_for_all() const { return false; }
  virtual std::unique_ptr<Group> join(const Membership& membership) = 0;
  // Whether this rank knows that all other members have also left all groups that this rank has left. Throws if a member's
  // calls did not match this rank's calls.
  virtual bool all_left() { return true; }
};

}  // namespace chorale
