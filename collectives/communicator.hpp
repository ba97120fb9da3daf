// A Communicator is what callers hold: a group of ranks that call collectives together, on one backend.
//
//   Communicator world = open_world("shm", runtime, clock);          every rank
//   Buffer x = world.allocator().allocate(bytes, Category::comm);    symmetric memory: peers read it directly
//   world.all_reduce(slice);                                         blocks; throws on failure
//   Request sum = world.start_all_reduce(slice);                     … other work …  sum.wait();
//   Communicator row = world.split(rank / 4, rank % 4);
//
// All ranks of a group start the same collectives in the same order; a call that differs from the others' is an error on all of them.
// Any number of collectives may be in flight. Progress is made in wait(), test(), poll() and in every blocking call, for all that this rank
// has in flight, on any group, and on any world opened beside.
//
// Sizes. A buffer has exactly the elements that its collective reads or writes there; any other size is an error. Without `counts` a
// vector is cut evenly: the first blocks are one element longer where it does not divide. gather, scatter and all_to_all want equal blocks.
// With `counts` they are the blocks' sizes, one a rank. What a rank passes where only the root reads or writes is ignored.
//
//                   input             output                          input             output
//   all_reduce      n                 n              reduce           n                 n (root)
//   reduce_scatter  n                 own block      gather           own block         all blocks (root)
//   all_gather      own block         n              scatter          all blocks (root) own block
//   broadcast       n                 n, the same    all_to_all       a block for each  a block from each
//
// In place. `input` and `output` may be one vector, on all ranks or on none. Then a block lies at its own place in that vector: rank r's
// input of all_gather, and its output of reduce_scatter, begin after the blocks of ranks 0 to r−1. (An all_to_all with counts may be in
// place on some ranks only.) A reduce in place passes the vector as both on every rank. Buffers that overlap in another way give undefined
// results. gather and scatter have no form in place.
//
// Leaving. A communicator that is destroyed says goodbye. A peer that waits there in a later call throws, and names the
// rank that left. The destructor does not wait for calls of other ranks, but the last communicator of a world listens, for
// 2 s at most, to what others say as they leave: if their last calls were not this rank's, it prints both calls and ends
// the rank. Over ucx it then waits until every rank has come to the end of the world.
//
// Lifetimes. Buffers must stay until the call is over, which for a started one its Request says; `counts` are read before
// the call returns, also by start_. Memory of allocator() must be given back before the last communicator of its world
// goes. The clock and the runtime must outlive all communicators.
#pragma once
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>

#include "collectives/problem.hpp"
#include "collectives/selection.hpp"
#include "src/base/clock.hpp"
#include "src/base/mpi.hpp"
#include "src/math/reduction.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

class Transport;
struct Algorithm;
struct WorldOptions;
using Counts = std::span<const std::int64_t>;

// One collective call. What the named calls below are made of; `run` and `start` take any.
struct Call {
  Collective what;
  Slice input = {}, output = {};
  Redop op = Redop::sum;
  int root = 0;
  Counts counts = {};  // the blocks' sizes, one a rank, where they are not even; read before run or start returns
  Counts taken = {};   // all_to_all: `counts` go out, these come in
};

// A collective in flight. Its buffers must stay as they are until it is over.
class [[nodiscard]] Request {
 public:
  Request() = default;
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;
  ~Request();  // waits, but not for long while an exception flies; if that fails it poisons the group and ends the rank
  void wait();
  bool test();         // makes progress; true when over
  struct PendingCall;  // one run of one operation

 private:
  friend class Communicator;
  explicit Request(PendingCall* pending) : pending_(pending) {}
  void wait(bool briefly);
  void wait_for_first(bool briefly);
  void forget();
  PendingCall* pending_ = nullptr;
};

struct Traffic {  // what a communicator has carried for this rank
  std::int64_t calls = 0;
  std::int64_t bytes_sent = 0;  // by the schedules' send steps; −1 once a native call, which nobody can count, was made
};

class Communicator {
 public:
  struct State;
  explicit Communicator(std::shared_ptr<State> state);  // open_world and split make them
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();

  int rank() const;
  int size() const;
  std::string backend() const;
  Transport& transport() const;
  Allocator& allocator() const;  // of symmetric memory, where the backend has it
  Clock& clock() const;
  const Traffic& traffic() const;

  // "auto", "native" or a name of the table, for one collective or for all that know it; its schedule is cut into chunks.
  void choose(Collective what, const std::string& algorithm, int chunks = 1);
  void choose(const std::string& algorithm);
  // An algorithm that is in no table, the same on all ranks. It must outlive the communicator and its groups. Prove it first (find_flaw): here
  // it runs as it is.
  void choose(const Algorithm& own, int chunks = 1);
  void check_calls(bool on);  // whether calls are compared between ranks; on at first
  // For benchmarks: run() of the library's own collectives blocks inside the library and moves nothing else. On all ranks or none, and
  // then only run() may call them. Otherwise their nonblocking forms are used.
  void block_in_native(bool on);
  void pretend_nodes(int ranks);  // so many consecutive ranks are one node to hierarchical algorithms; 0: all are
  void go_by(std::shared_ptr<const Selector> selector);  // what auto asks; it must know the same on all ranks
  std::shared_ptr<const Selector> selector() const;
  Choice choice(const Call& call) const;  // what a call would run, and why

  // Where buffers on a device lie; who copies them, where the backend reaches the host alone. For all groups of the world, before any call
  // on such buffers. The buffers of a call are all on devices or all on the host, on every rank.
  void use_device(std::shared_ptr<Memory> device);

  // Members of one color make a group, in the order of their keys (and ranks). A negative color: of no group, an empty handle.
  Communicator split(int color, int key) const;
  explicit operator bool() const { return state_ != nullptr; }

  // This rank will not call here again: whoever waits for it on this group, or for a message of it, is told why.
  void give_up(const std::exception& why);

  void run(const Call& call);  // blocks; throws on failure
  Request start(const Call& call);
  void poll() const;  // makes progress, as test() does, for who has other work to do

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
  void all_to_all(Slice input, Slice output, Counts given = {}, Counts taken = {}) {
    run({Collective::all_to_all, input, output, Redop::sum, 0, given, taken});
  }
  void barrier() { run({Collective::barrier}); }

  // The same, begun and not waited for.
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
  Request start_all_to_all(Slice input, Slice output, Counts given = {}, Counts taken = {}) {
    return start({Collective::all_to_all, input, output, Redop::sum, 0, given, taken});
  }
  Request start_barrier() { return start({Collective::barrier}); }

  // From one rank to another; messages between two ranks arrive in the order in which they were sent.
  void send(Slice x, int to) { start_send(x, to).wait(); }
  void recv(Slice x, int from) { start_recv(x, from).wait(); }
  Request start_send(Slice x, int to);
  Request start_recv(Slice x, int from);

 private:
  State& state() const;  // throws where there is none
  void forget_routes();
  std::shared_ptr<State> state_;
  friend Communicator open_world(std::shared_ptr<Transport>, Clock&, const WorldOptions&);
};

// How a world behaves. The environment overrules what the program sets here.
struct WorldOptions {
  // A rank that waits in a call gives up when nothing has moved for this long. Choose more than the longest pause between
  // two calls of a peer; 0 is no limit. In the environment: CHORALE_TIMEOUT=SECONDS. All worlds that share progress have
  // one limit: see `beside`.
  double timeout_seconds = 600;
  // If a program opens several worlds, each after the first names an earlier one here. A wait on any of them then makes
  // progress on all, because a rank that waits in one may still owe a peer a message in another.
  const Communicator* beside = nullptr;
};

// The world on a backend, on every rank at once; throws one line that says why the backend is not available. "auto" is the fastest for
// buffers on the host: mapped memory where all ranks share one, else UCX, else MPI.
Communicator open_world(const std::string& backend, const mpi::Runtime& runtime, Clock& clock,
                        const WorldOptions& options = {});
// The same over a transport that is already there: tests, and ranks that are threads.
Communicator open_world(std::shared_ptr<Transport> transport, Clock& clock, const WorldOptions& options = {});

}  // namespace chorale
