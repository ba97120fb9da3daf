// A Communicator is the caller's handle: a group of ranks that call collectives together, on one backend.
//
//   Communicator world = open_world("shm", runtime, clock);          every rank
//   Buffer x = world.allocator().allocate(bytes, Category::comm);    symmetric memory: peers read it directly
//   world.all_reduce(slice);                                         blocks; throws on failure
//   Request sum = world.start_all_reduce(slice);                     … other work …  sum.wait();
//   Communicator row = world.split(rank / 4, rank % 4);
//
// All ranks of a group start the same collectives in the same order. If a call differs between ranks, all of them get an
// error. Any number of collectives may be in flight. wait(), test(), poll() and every blocking call make progress on all
// calls that this rank has in flight: on any group, and on any world opened with `beside`.
//
// Sizes. A buffer has exactly the elements that its collective reads or writes there; any other size is an error. Without
// `counts`, a vector is cut evenly: if the ranks do not divide it, the first blocks are one element longer. gather, scatter
// and all_to_all then need equal blocks. With `counts`, each rank's block has the size given for it. A buffer that only the
// root reads or writes is ignored on the other ranks.
//
//                   input             output                          input             output
//   all_reduce      n                 n              reduce           n                 n (root)
//   reduce_scatter  n                 own block      gather           own block         all blocks (root)
//   all_gather      own block         n              scatter          all blocks (root) own block
//   broadcast       n                 n, the same    all_to_all       a block for each  a block from each
//
// In place. `input` and `output` may be one vector, on all ranks or on none. A block then lies at its own place in that
// vector. Rank r's input of all_gather, and its output of reduce_scatter, begin after the blocks of ranks 0 to r−1. (An
// all_to_all with counts may be in place on some ranks only.) For an in-place reduce, every rank passes the vector as input
// and output. Buffers that overlap in another way give undefined results. gather and scatter have no in-place form.
//
// Leaving. A communicator that is destroyed tells its peers. A peer that waits for this rank in a later call throws, and
// names the rank that left. The destructor does not wait for calls of other ranks. The last communicator of a world listens
// for their farewells, for at most 2 s. If another rank's last call differs, it prints both calls and ends the rank. Over
// ucx it then waits until every rank has left the world.
//
// Lifetimes. Buffers must stay valid until the call is over; a started call is over when its Request says so. `counts` are
// read before the call returns, also by the start_ functions. Memory of allocator() must be freed before the last
// communicator of its world is destroyed. The clock and the runtime must outlive all communicators.
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

// One collective call. The named functions of Communicator each make one; `run` and `start` take any.
struct Call {
  Collective what;
  Slice input = {}, output = {};
  Redop op = Redop::sum;
  int root = 0;
  Counts counts = {};  // sizes of the blocks, one per rank, if they are not even; read before run or start returns
  Counts taken = {};   // all_to_all: sizes of the received blocks; `counts` are those of the sent blocks
};

// A collective in flight. Its buffers must not be touched until it is over.
class [[nodiscard]] Request {
 public:
  Request() = default;
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;
  ~Request();  // waits, but only briefly during stack unwinding; on failure, poisons the group and ends the rank
  void wait();
  bool test();         // makes progress; true once the call is over
  struct PendingCall;  // one run of one operation

 private:
  friend class Communicator;
  explicit Request(PendingCall* pending) : pending_(pending) {}
  void wait(bool briefly);
  void wait_for_first(bool briefly);
  void forget();
  PendingCall* pending_ = nullptr;
};

struct Traffic {  // of one communicator, on this rank
  std::int64_t calls = 0;
  std::int64_t bytes_sent = 0;  // by the schedules' send steps; −1 after a native call, whose bytes are unknown
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
  Allocator& allocator() const;  // of symmetric memory, if the backend has it
  Clock& clock() const;
  const Traffic& traffic() const;

  // "auto", "native" or an algorithm's name, for one collective or for all that have it. `chunks` cuts its schedule.
  void choose(Collective what, const std::string& algorithm, int chunks = 1);
  void choose(const std::string& algorithm);
  // An algorithm outside the table, the same on all ranks. It must outlive the communicator and its groups. Prove it first
  // (find_flaw): it runs here unchecked.
  void choose(const Algorithm& own, int chunks = 1);
  void check_calls(bool on);  // whether calls are compared between ranks; on by default
  // For benchmarks: run() of a native collective blocks inside the library and makes no progress on other calls. Set it on
  // all ranks or on none. While it is on, native collectives need run(). By default their nonblocking forms are used.
  void block_in_native(bool on);
  void pretend_nodes(int ranks);  // so many consecutive ranks form a node for hierarchical algorithms; 0: all ranks do
  void go_by(std::shared_ptr<const Selector> selector);  // used by auto; must hold the same data on all ranks
  std::shared_ptr<const Selector> selector() const;
  Choice choice(const Call& call) const;  // what a call would run, and why

  // The device where buffers may lie; its Memory copies them if the backend reaches only the host. Holds for all groups of
  // the world; set it before any call on device buffers. A call's buffers are all on devices, or all on the host.
  void use_device(std::shared_ptr<Memory> device);

  // Ranks with the same color form a group, ordered by key, then by rank. With a negative color, the handle is empty.
  Communicator split(int color, int key) const;
  explicit operator bool() const { return state_ != nullptr; }

  // This rank will make no more calls here. Peers that wait for it on this group, or for a message from it, are told why.
  void give_up(const std::exception& why);

  void run(const Call& call);  // blocks; throws on failure
  Request start(const Call& call);
  void poll() const;  // makes progress like test(), for callers with other work to do

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

  // The same, nonblocking.
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

  // Point-to-point. Messages from one rank to another arrive in the order in which they were sent.
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

// How a world behaves. Environment variables override these values.
struct WorldOptions {
  // A waiting rank gives up after this many seconds without any progress. Choose more than a peer's longest pause between
  // two calls; 0 means no limit. CHORALE_TIMEOUT=SECONDS overrides it. Worlds joined by `beside` share one limit.
  double timeout_seconds = 600;
  // If a program opens several worlds, each after the first names an earlier one here. A wait on any of them then makes
  // progress on all. Otherwise a rank that waits in one world may block a peer that needs its message in another.
  const Communicator* beside = nullptr;
  // Set if the world has only a part of a program's ranks: these ranks, kept for as long as the world.
  std::shared_ptr<const mpi::Runtime> part = nullptr;
};

// Opens the world on a backend, on every rank at once. Throws, and says why, if the backend is not available. "auto" picks
// the fastest for host buffers: mapped memory if all ranks share a host, else UCX, else MPI.
Communicator open_world(const std::string& backend, const mpi::Runtime& runtime, Clock& clock,
                        const WorldOptions& options = {});
// The same over an existing transport: for tests, and for ranks that are threads.
Communicator open_world(std::shared_ptr<Transport> transport, Clock& clock, const WorldOptions& options = {});

}  // namespace chorale
