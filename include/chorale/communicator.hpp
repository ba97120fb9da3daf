// A Communicator is a handle for a group of ranks that call collectives together, on one backend.
//
//   Communicator world = open_world("shm", runtime, clock);          every rank
//   Buffer x = world.allocator().allocate(bytes, Category::comm);    symmetric memory: peers read it directly
//   world.all_reduce(slice);                                         blocks; throws on failure
//   Request sum = world.start_all_reduce(slice);                     … other work …  sum.wait();
//   Communicator row = world.split(rank / 4, rank % 4);
//
// All ranks of a group must start the same collectives in the same order. If the calls of the ranks do not match, every rank
// gets an error. Any number of collectives can be in flight. wait(), test(), poll() and every blocking call make progress on
// all calls that this rank has in flight. These calls can belong to any group of this world, and to any group of a world
// that WorldOptions::beside connects to this world.
//
// Sizes. Each buffer must have exactly the number of elements that the table below shows, where n is the length of the
// complete vector. Any other number is an error. On ranks other than the root, a buffer marked "(root)" in the table is
// ignored and can be Slice{}. Every other buffer must have the element type and the device of the call. This rule also
// applies to empty buffers, for example Slice{nullptr, 0, DType::i32}.
//
//                   input             output                          input             output
//   all_reduce      n                 n              reduce           n                 n (root)
//   reduce_scatter  n                 own block      gather           own block         all blocks (root)
//   all_gather      own block         n              scatter          all blocks (root) own block
//   broadcast       n (root)          n              all_to_all       a block for each  a block from each
//
// The vector is split into one block per rank. With `counts`, counts[r] is the number of elements in rank r's block. Without
// `counts`, the vector is split evenly. If n is not a multiple of the number of ranks, the first blocks are one element
// longer. gather, scatter and all_to_all without `counts` accept only equal blocks.
//
// In place. `input` and `output` may be the same vector, either on all ranks or on no rank. In an in-place call, an argument
// marked "own block" in the table is a part of that vector. On rank r, the own block begins after the blocks of ranks 0 to
// r−1. A rank's own block is the `input` of all_gather and the `output` of reduce_scatter. An all_to_all with counts may be
// in place on some ranks and out of place on others. For an in-place reduce or broadcast, every rank passes the same vector
// as input and output. If buffers overlap in any other way, the results are undefined. gather and scatter have no in-place
// form.
//
// Leaving. A communicator's destructor tells the other ranks of the group that this rank has left. If another rank waits for
// the departed rank in a later call, that call throws and names the departed rank. If a destructor detects that the last
// calls of two ranks do not match, the destructor prints both calls and ends the process. Most destructors do not wait. When
// a rank destroys its last communicator of a world, the destructor waits up to 2 s for the other ranks to leave too. On the
// UCX backends, this last destructor waits until every rank has left the world, even if that takes longer.
//
// Lifetimes. A call's buffers must stay valid until the call has completed. A nonblocking call has completed when wait() has
// returned or test() has returned true. All functions, including the start_ functions, read `counts` before they return. A
// program must free all memory from allocator() before it destroys the last communicator of the world. The clock and the
// runtime must outlive all communicators.
#pragma once
#include <chorale/algorithm.hpp>
#include <chorale/buffer.hpp>
#include <chorale/clock.hpp>
#include <chorale/element.hpp>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace chorale {

class Selector;
class Transport;
struct Topology;
struct WorldOptions;
namespace mpi {
class Runtime;  // chorale/run.hpp
}

using Counts = std::span<const std::int64_t>;

// The arguments of one collective call. Each named function of Communicator, such as all_reduce, fills in a Call. `run` and
// `start` accept any Call.
struct Call {
  Collective what;
  Slice input = {}, output = {};
  Redop op = Redop::sum;
  int root = 0;
  Counts counts = {};  // sizes of uneven blocks, one per rank; empty for even blocks; read before run() or start() returns
  Counts taken = {};   // all_to_all: sizes of the received blocks; `counts` has the sizes of the sent blocks
  // Optional, for an all_to_all with counts: the counts of all ranks, if every rank knows the counts of all ranks. Rank r
  // sends everybodys[r · size + s] elements to rank s. A call with `everybodys` must not be in place. If `everybodys` is
  // empty, shm and nccl exchange the counts before each call.
  Counts everybodys = {};
};

// A collective in flight. The caller must not touch the collective's buffers until the collective has completed.
class [[nodiscard]] Request {
 public:
  Request() = default;
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;
  ~Request();  // waits, but at most 2 s during stack unwinding; if the call fails, tells the peers and ends the process
  void wait();
  bool test();         // makes progress; true once the call has completed
  struct PendingCall;  // the state of the call until it has completed

 private:
  friend class Communicator;
  explicit Request(PendingCall* pending) : pending_(pending) {}
  void wait(bool briefly);
  void wait_for_first(bool briefly);
  void forget();
  PendingCall* pending_ = nullptr;
};

struct Traffic {                    // number of calls and of sent bytes, for this rank and one communicator
  std::int64_t calls = 0;           // number of calls; if Chorale splits a call, each part counts as a call
  std::int64_t bytes_sent = 0;      // bytes sent by the schedules; −1 after a native call, because its bytes are unknown
  std::int64_t bytes_crossing = 0;  // the part of bytes_sent that went to ranks on other hosts, or −1 if unknown
};

class Communicator {
 public:
  struct State;
  explicit Communicator(std::shared_ptr<State> state);  // called by open_world and split
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();

  int rank() const;
  int size() const;
  std::string backend() const;
  Transport& transport() const;
  Allocator& allocator() const;  // allocates symmetric memory (peers read it directly) if the backend has any
  Clock& clock() const;
  const Traffic& traffic() const;

  // `algorithm` is "auto", "native" or an algorithm's name. The overload with `what` chooses the algorithm of one
  // collective, and splits the algorithm's schedule into `chunks` chunks. The overload without `what` applies to every
  // collective that has an algorithm of that name, and does not split schedules.
  void choose(Collective what, const std::string& algorithm, int chunks = 1);
  void choose(const std::string& algorithm);
  // Runs the caller's own algorithm for this collective. All ranks must choose the same algorithm. The algorithm must
  // outlive this communicator and the groups that split() makes from this communicator. Check the algorithm with find_flaw
  // first, because calls run it unchecked.
  void choose(const Algorithm& own, int chunks = 1);
  // Whether ranks compare their calls; on by default. All ranks of the group must switch before the same call.
  void check_calls(bool on);
  // For benchmarks. If `on` is true, run() executes a native collective by MPI's blocking function, such as MPI_Allreduce.
  // The blocking function makes no progress on Chorale's other calls. By default, run() uses the nonblocking function, such
  // as MPI_Iallreduce. Turn this option on for all ranks or for none. While the option is on, call native collectives by
  // run(), never by start(). MPI does not match a blocking call with a nonblocking call.
  void block_in_native(bool on);
  // Later calls choose and plan algorithms as if rank r were on host hosts[r]. If `hosts` is empty, later calls are planned
  // as if all ranks were on one host. Messages still use the real links. Groups that split() creates later inherit the
  // simulated hosts.
  void pretend_hosts(const std::vector<int>& hosts);
  const std::vector<int>& hosts() const;  // the host of each rank, real or simulated; empty if all are on one host
  // Sets this world's selector of `auto`. The selector must be equal on all ranks. Other groups of the world keep the
  // algorithms that they have already chosen.
  void go_by(std::shared_ptr<const Selector> selector);
  std::shared_ptr<const Selector> selector() const;
  Choice choice(const Call& call) const;  // the algorithm that a call would run, and the reason for this choice

  // Lets callers pass buffers on this device, in all groups of the world. If the backend can access only host memory,
  // `device` copies the buffers to the host and back. Call use_device before any collective on device buffers. The buffers
  // of one collective must be either all on the device or all on the host.
  void use_device(std::shared_ptr<Memory> device);

  // This function is not yet stable. Ranks with the same color form a group, ordered by key, then by rank. A rank with a
  // negative color joins no group and gets an empty handle, for which operator bool is false.
  Communicator split(int color, int key) const;
  explicit operator bool() const { return state_ != nullptr; }

  // Tells the peers that this rank makes no more calls on this group, and gives the reason. A peer that waits for this rank,
  // in a collective of the group or for a message, gets an error with that reason.
  void give_up(const std::exception& why);

  void run(const Call& call);  // blocks; throws on failure
  Request start(const Call& call);
  void poll() const;  // makes progress on all calls, for callers that compute between polls

  void all_reduce(Slice x, Redop op = Redop::sum) { all_reduce(x, x, op); }
  void all_reduce(Slice input, Slice output, Redop op = Redop::sum) { run({Collective::all_reduce, input, output, op}); }
  void reduce_scatter(Slice input, Slice output, Redop op = Redop::sum, Counts counts = {}) {
    run({Collective::reduce_scatter, input, output, op, 0, counts});
  }
  void all_gather(Slice input, Slice output, Counts counts = {}) {
    run({Collective::all_gather, input, output, Redop::sum, 0, counts});
  }
  void broadcast(Slice x, int root) { run({Collective::broadcast, x, x, Redop::sum, root}); }
  void reduce(Slice input, Slice output, int root, Redop op = Redop::sum) {
    run({Collective::reduce, input, output, op, root});
  }
  void gather(Slice input, Slice output, int root, Counts counts = {}) {
    run({Collective::gather, input, output, Redop::sum, root, counts});
  }
  void scatter(Slice input, Slice output, int root, Counts counts = {}) {
    run({Collective::scatter, input, output, Redop::sum, root, counts});
  }
  void all_to_all(Slice input, Slice output, Counts given = {}, Counts taken = {}, Counts everybodys = {}) {
    run({Collective::all_to_all, input, output, Redop::sum, 0, given, taken, everybodys});
  }
  void barrier() { run({Collective::barrier}); }

  // The nonblocking forms of the collectives above.
  Request start_all_reduce(Slice x, Redop op = Redop::sum) { return start_all_reduce(x, x, op); }
  Request start_all_reduce(Slice input, Slice output, Redop op = Redop::sum) {
    return start({Collective::all_reduce, input, output, op});
  }
  Request start_reduce_scatter(Slice input, Slice output, Redop op = Redop::sum, Counts counts = {}) {
    return start({Collective::reduce_scatter, input, output, op, 0, counts});
  }
  Request start_all_gather(Slice input, Slice output, Counts counts = {}) {
    return start({Collective::all_gather, input, output, Redop::sum, 0, counts});
  }
  Request start_broadcast(Slice x, int root) { return start({Collective::broadcast, x, x, Redop::sum, root}); }
  Request start_reduce(Slice input, Slice output, int root, Redop op = Redop::sum) {
    return start({Collective::reduce, input, output, op, root});
  }
  Request start_gather(Slice input, Slice output, int root, Counts counts = {}) {
    return start({Collective::gather, input, output, Redop::sum, root, counts});
  }
  Request start_scatter(Slice input, Slice output, int root, Counts counts = {}) {
    return start({Collective::scatter, input, output, Redop::sum, root, counts});
  }
  Request start_all_to_all(Slice input, Slice output, Counts given = {}, Counts taken = {}, Counts everybodys = {}) {
    return start({Collective::all_to_all, input, output, Redop::sum, 0, given, taken, everybodys});
  }
  Request start_barrier() { return start({Collective::barrier}); }

  // Point-to-point messages. Messages from one rank to another arrive in the order in which they were sent.
  void send(Slice x, int to) { start_send(x, to).wait(); }
  void recv(Slice x, int from) { start_recv(x, from).wait(); }
  Request start_send(Slice x, int to);
  Request start_recv(Slice x, int from);

 private:
  State& state() const;  // throws if the handle is empty
  void forget_routes();
  std::shared_ptr<State> state_;
  friend Communicator open_world(std::shared_ptr<Transport>, Clock&, const WorldOptions&);
};

// The options of a world. WorldOptions is not yet stable.
struct WorldOptions {
  // A wait throws if there is no progress for this many seconds. Choose a limit that is longer than any peer's pause between
  // two calls; 0 means no limit. CHORALE_TIMEOUT=SECONDS overrides this value. If `beside` names an earlier world, the limit
  // of the earlier world applies.
  double timeout_seconds = 600;
  // If a program opens several worlds, each world after the first must name an earlier world here. A wait in any of these
  // worlds then makes progress in all of them. Without `beside`, a rank that waits in one world would not complete its
  // messages in the other worlds. A peer that needs these messages would be blocked.
  const Communicator* beside = nullptr;
  // The hosts of the ranks. If null, open_world(backend, …) detects the hosts, and open_world(transport, …) assumes a single
  // host.
  const Topology* topology = nullptr;
  // The runtime of this world's ranks, if the world has only some of the program's ranks. The world shares ownership of the
  // runtime.
  std::shared_ptr<const mpi::Runtime> part = nullptr;
  const mpi::Runtime* runtime = nullptr;  // set by open_world(backend, …): the runtime of the ranks
};

// Not yet stable, like WorldOptions. Opens a world of all ranks of `runtime` on a backend; every rank calls this. If the
// backend is not available, throws an error that says why. "auto" picks the fastest available backend for host buffers. On
// one host, the fastest backend is shm (mapped memory). On several hosts, the fastest backend is shm+ucx, which uses mapped
// memory within each host and UCX between hosts. If neither is available, "auto" picks ucx, or else mpi.
Communicator open_world(const std::string& backend, const mpi::Runtime& runtime, Clock& clock,
                        const WorldOptions& options = {});
// Opens a world over an existing transport, for tests and for ranks that are threads.
Communicator open_world(std::shared_ptr<Transport> transport, Clock& clock, const WorldOptions& options = {});

}  // namespace chorale
