// A Communicator is a handle for a group of ranks that call collectives together, on one backend.
//
//   Communicator world = open_world("shm", runtime, clock);          every rank
//   Buffer x = world.allocator().allocate(bytes, Category::comm);    symmetric memory: peers read it directly
//   world.all_reduce(slice);                                         blocks; throws on failure
//   Request sum = world.start_all_reduce(slice);                     … other work …  sum.wait();
//   Communicator row = world.split(rank / 4, rank % 4);
//
// All ranks of a group start the same collectives in the same order. If a call differs between ranks, every rank gets an
// error. Any number of collectives may be in flight. wait(), test(), poll() and every blocking call make progress on all
// calls that this rank has in flight. These may belong to any group of this world, or of a world joined to it by
// WorldOptions::beside.
//
// Sizes. Each buffer has exactly the number of elements shown in this table, where n is the length of the whole vector; any
// other number is an error. On ranks other than the root, a buffer marked "root" is ignored and may be Slice{}. Every other
// buffer must have the type and device of the call, even if the buffer is empty: Slice{nullptr, 0, DType::i32}.
//
//                   input             output                          input             output
//   all_reduce      n                 n              reduce           n                 n (root)
//   reduce_scatter  n                 own block      gather           own block         all blocks (root)
//   all_gather      own block         n              scatter          all blocks (root) own block
//   broadcast       n (root)          n              all_to_all       a block for each  a block from each
//
// The vector is cut into one block per rank. With `counts`, counts[r] is the number of elements in rank r's block. Without
// `counts`, blocks are equal, or the first blocks are one element longer if n is not a multiple of the number of ranks. But
// gather, scatter and all_to_all accept only equal blocks if there are no `counts`.
//
// In place. `input` and `output` may be the same vector, either on all ranks or on none. An argument that the table calls
// "own block" is then a part of that vector. On rank r, the `input` of all_gather and the `output` of reduce_scatter begin
// after the blocks of ranks 0 to r−1. (An all_to_all with counts may be in place on some ranks only.) For an in-place reduce
// or broadcast, every rank passes the vector as input and output. Buffers that overlap in another way give undefined
// results. gather and scatter have no in-place form.
//
// Leaving. A communicator's destructor tells the other ranks of the group that this rank has left. If one of them waits for
// this rank in a later call, that call throws and names the rank that left. The destructor does not wait for other ranks,
// except when this rank destroys its last communicator of a world. Then the destructor waits at most 2 s for the other ranks
// to leave too. If it learns meanwhile that another rank's last call differed from this rank's, it prints both calls and
// ends the process. Otherwise it returns. Over ucx it returns only after every rank has left the world, even if that takes
// longer than 2 s.
//
// Lifetimes. Buffers must stay valid until the call is over. A nonblocking call is over when wait() has returned or test()
// has returned true. All functions, including the start_ functions, read `counts` before they return. Memory of allocator()
// must be freed before the last communicator of its world is destroyed. The clock and the runtime must outlive all
// communicators.
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

// The arguments of one collective call. Each named function of Communicator fills in a Call; `run`
// and `start` take any Call.
struct Call {
  Collective what;
  Slice input = {}, output = {};
  Redop op = Redop::sum;
  int root = 0;
  Counts counts = {};  // sizes of uneven blocks, one per rank; empty: cut evenly. Read before run or start returns
  Counts taken = {};   // all_to_all: sizes of the received blocks; `counts` has the sizes of the sent blocks
  // An all_to_all with counts may pass the counts of all ranks here, if every rank knows them: rank r sends everybodys[r ·
  // size + s] elements to rank s. Then the call must not be in place. If this is empty, shm and nccl exchange counts before
  // each call.
  Counts everybodys = {};
};

// A collective in flight. Its buffers must not be touched until it is over.
class [[nodiscard]] Request {
 public:
  Request() = default;
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;
  ~Request();  // waits; during stack unwinding at most 2 s. If the call fails, tells the peers and ends the process
  void wait();
  bool test();         // makes progress; true once the call is over
  struct PendingCall;  // the call, until it is over

 private:
  friend class Communicator;
  explicit Request(PendingCall* pending) : pending_(pending) {}
  void wait(bool briefly);
  void wait_for_first(bool briefly);
  void forget();
  PendingCall* pending_ = nullptr;
};

struct Traffic {                    // the calls and sent bytes of this rank on one communicator
  std::int64_t calls = 0;           // number of calls; a call that the library cuts into pieces counts once for each piece
  std::int64_t bytes_sent = 0;      // sent by the schedules' send steps; −1 after a native call, whose bytes are unknown
  std::int64_t bytes_crossing = 0;  // of these, to ranks on other hosts; −1: unknown
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
  Allocator& allocator() const;  // allocates symmetric memory, which peers read directly, if the backend has any
  Clock& clock() const;
  const Traffic& traffic() const;

  // `algorithm` is "auto", "native" or an algorithm's name. The first form chooses the algorithm of one collective, and cuts
  // its schedule into `chunks`. The second form chooses for every collective that has an algorithm of that name, and does
  // not cut schedules.
  void choose(Collective what, const std::string& algorithm, int chunks = 1);
  void choose(const std::string& algorithm);
  // Makes calls of this collective use the caller's own algorithm, which must be the same on all ranks. The algorithm must
  // outlive this communicator and the groups that split() makes from it. Prove it first (find_flaw): it runs here unchecked.
  void choose(const Algorithm& own, int chunks = 1);
  void check_calls(bool on);  // whether calls are compared between ranks; on by default
  // For benchmarks. If on, run() of a native collective uses the blocking function of the backend's library (MPI_Allreduce),
  // which makes no progress on other calls. If off, the default, it uses the nonblocking one (MPI_Iallreduce). Turn this on
  // for all ranks or for none. While it is on, call native collectives by run(), never by start(), because the library does
  // not match a blocking call with a nonblocking one.
  void block_in_native(bool on);
  // From now on, algorithms are chosen and planned as if rank r were on host hosts[r]. If `hosts` is empty, all ranks count
  // as being on one host. Messages are still sent between the real hosts. Groups that split() makes later inherit the
  // pretended hosts.
  void pretend_hosts(const std::vector<int>& hosts);
  const std::vector<int>& hosts() const;  // the host of each rank, real or pretended; empty: all ranks are on one host
  void go_by(std::shared_ptr<const Selector> selector);  // `auto` asks this selector, whose data must be equal on all ranks
  std::shared_ptr<const Selector> selector() const;
  Choice choice(const Call& call) const;  // what a call would run, and why

  // Allows callers' buffers on this device, for all groups of the world. If the backend reaches only host memory, `device`
  // copies such buffers to the host and back. Call this before any collective on device buffers. The buffers of one
  // collective must be either all on the device or all on the host.
  void use_device(std::shared_ptr<Memory> device);

  // Not yet stable.
  // Ranks with the same color form a group, ordered by key, then by rank. A rank with a negative color is in no group. It
  // gets an empty handle, for which operator bool is false.
  Communicator split(int color, int key) const;
  explicit operator bool() const { return state_ != nullptr; }

  // Tells the peers that this rank makes no more calls on this group, and why. A peer that waits for this rank in a
  // collective of the group, or for a message from it, gets an error with that reason.
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

  // The same collectives, nonblocking.
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

// How a world behaves; not yet stable. Environment variables override these values.
struct WorldOptions {
  // A wait that sees no progress for this many seconds throws. Choose a limit that is longer than any peer's pause between
  // two calls; 0 means no limit. CHORALE_TIMEOUT=SECONDS overrides this value. A world that names another in `beside` uses
  // that world's limit.
  double timeout_seconds = 600;
  // If a program opens several worlds, each world after the first names an earlier world here. A wait in any of these worlds
  // then makes progress in all of them. Otherwise a rank that waits in one world does not send the rest of its messages in
  // another world. A peer that needs them is then blocked.
  const Communicator* beside = nullptr;
  // The hosts of the ranks. If null, open_world(backend, …) detects the hosts, and open_world(transport, …) assumes a single
  // host.
  const Topology* topology = nullptr;
  // The runtime of this world's ranks, if the world has only some of the program's ranks. The world shares its ownership.
  std::shared_ptr<const mpi::Runtime> part = nullptr;
  const mpi::Runtime* runtime = nullptr;  // set by open_world(backend, …): the runtime of the ranks
};

// Not yet stable, like WorldOptions.
// Opens a world of all ranks of `runtime` on a backend; every rank calls this. If the backend is not available, throws an
// error that says why. "auto" picks the fastest available backend for host buffers. On one host that is shm (mapped memory).
// On several hosts, shm+ucx uses mapped memory within each host and UCX between hosts. The next choices are ucx and mpi.
Communicator open_world(const std::string& backend, const mpi::Runtime& runtime, Clock& clock,
                        const WorldOptions& options = {});
// The same over an existing transport: for tests, and for ranks that are threads.
Communicator open_world(std::shared_ptr<Transport> transport, Clock& clock, const WorldOptions& options = {});

}  // namespace chorale
