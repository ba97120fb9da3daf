#include <nccl.h>

#include <utility>

#include "src/math/reduction.hpp"
#include "tests/spmd.hpp"

namespace chorale::test {
namespace {

constexpr DType dtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};
constexpr Redop ops[] = {Redop::sum, Redop::prod, Redop::min, Redop::max};
constexpr int polls_until_done = 3;

std::size_t width_of(ncclDataType_t type) { return static_cast<std::size_t>(size_of(dtypes[type])); }

// What a communicator's id says: who made it, and as his how many-th.
struct Id {
  int maker, number;
};

// Messages that were called for together, and what is done when all are over.
struct Exchange {
  struct Line {
    int peer;
    bool incoming;
    std::byte* place;
    std::size_t bytes;
  };
  std::vector<Line> lines;
  std::vector<std::shared_ptr<std::vector<std::byte>>>
      sent;  // copies, which outlive the device's memory when a send is given up
  std::vector<std::function<void()>> then;
};

struct Calls {  // between ncclGroupStart and ncclGroupEnd
  int depth = 0;
  EmulatedComm* comm = nullptr;
  EmulatedStream* stream = nullptr;
  Exchange exchange;
} calls;

}  // namespace

class EmulatedComm {
 public:
  EmulatedComm(Id id, int rank, int size)
      : rank(rank),
        size(size),
        tag_(1 + (id.number * 64 + id.maker) % 30000),
        world_ranks_(static_cast<std::size_t>(size), -1) {
    world_ranks_[static_cast<std::size_t>(rank)] = world().rank();
    if (rank == 0)  // hears of all, and then tells all
      for (int peer = 1; peer < size; ++peer) receive(who_[peer], 2, MPI_ANY_SOURCE);
    else
      mine_[0] = rank, mine_[1] = world().rank(), send(mine_, 2, id.maker), receive(world_ranks_.data(), size, id.maker);
  }

  ncclResult_t poll() {
    Machine::here().advance();
    if (!is_connected_) return connect() ? ncclSuccess : ncclInProgress;
    if (!pending_) return ncclSuccess;
    if (--polls_ > 0) return ncclInProgress;
    pending_->tasks.push_back([this, exchange = std::move(exchange_), requests = std::vector<MPI_Request>(),
                               is_posted = false]() mutable { return go_on(exchange, requests, is_posted); });
    pending_ = nullptr;
    return ncclSuccess;
  }

  ncclResult_t launch(Exchange exchange, EmulatedStream* stream) {
    if (!is_connected_ || pending_ || is_aborted) return ncclInvalidUsage;
    exchange_ = std::move(exchange);
    pending_ = stream;
    polls_ = polls_until_done;
    return ncclInProgress;
  }

  const int rank, size;
  bool is_aborted = false;

 private:
  void send(const int* numbers, int count, int to) {
    PMPI_Isend(numbers, count, MPI_INT, to, tag_, world().world(), &set_up_.emplace_back());
  }
  void receive(int* numbers, int count, int from) {
    PMPI_Irecv(numbers, count, MPI_INT, from, tag_, world().world(), &set_up_.emplace_back());
  }

  bool connect() {
    int over = 0;
    PMPI_Testall(static_cast<int>(set_up_.size()), set_up_.data(), &over, MPI_STATUSES_IGNORE);
    if (!over) return false;
    set_up_.clear();
    if (rank != 0 || has_told_) return is_connected_ = true;
    for (int i = 1; i < size; ++i) world_ranks_[static_cast<std::size_t>(who_[i][0])] = who_[i][1];
    for (int peer = 1; peer < size; ++peer) send(world_ranks_.data(), size, world_ranks_[static_cast<std::size_t>(peer)]);
    has_told_ = true;
    return false;
  }

  bool go_on(Exchange& exchange, std::vector<MPI_Request>& requests, bool& is_posted) {
    if (!is_posted && !is_aborted)
      for (const Exchange::Line& line : exchange.lines) requests.push_back(post(line, exchange));
    is_posted = true;
    if (is_aborted) return forget(exchange, requests);
    int over = 0;
    PMPI_Testall(static_cast<int>(requests.size()), requests.data(), &over, MPI_STATUSES_IGNORE);
    if (over)
      for (const auto& then : exchange.then) then();
    return over;
  }

  MPI_Request post(const Exchange::Line& line, Exchange& exchange) const {
    const int peer = world_ranks_[static_cast<std::size_t>(line.peer)], bytes = static_cast<int>(line.bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    if (line.incoming) {
      PMPI_Irecv(line.place, bytes, MPI_BYTE, peer, tag_, world().world(), &request);
    } else {
      const auto copy = std::make_shared<std::vector<std::byte>>(line.place, line.place + line.bytes);
      exchange.sent.push_back(copy);
      PMPI_Issend(copy->data(), bytes, MPI_BYTE, peer, tag_, world().world(), &request);
    }
    return request;
  }

  // MPI takes receives back, and only then is their place free; of sends we let go, and keep what they send.
  bool forget(const Exchange& exchange, std::vector<MPI_Request>& requests) {
    given_up_.insert(given_up_.end(), exchange.sent.begin(), exchange.sent.end());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (requests[i] == MPI_REQUEST_NULL) continue;
      if (!exchange.lines[i].incoming) {
        PMPI_Request_free(&requests[i]);
        continue;
      }
      PMPI_Cancel(&requests[i]);
      PMPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
    return true;
  }

  const int tag_;
  std::vector<int> world_ranks_;
  int mine_[2] = {}, who_[64][2] = {};
  std::vector<MPI_Request> set_up_;
  bool has_told_ = false, is_connected_ = false;
  Exchange exchange_;
  std::vector<std::shared_ptr<std::vector<std::byte>>> given_up_;
  EmulatedStream* pending_ = nullptr;  // of the exchange that has been called for and is not on it yet
  int polls_ = 0;
};

namespace {

// A call of its own, or one of a group.
template <class Add>
ncclResult_t call(ncclComm_t comm, cudaStream_t stream, Add&& add) {
  ncclGroupStart();
  calls.comm = comm, calls.stream = stream;
  add(calls.exchange);
  return ncclGroupEnd();
}

// Everybody's contributions come to this rank, which puts their sum into `out`; its own is among them.
void add_sum(Exchange& exchange, ncclComm_t comm, const std::byte* own, std::byte* out, std::size_t count,
             ncclDataType_t type, ncclRedOp_t op) {
  const std::size_t bytes = count * width_of(type);
  const auto landing = std::make_shared<std::vector<std::byte>>(bytes * static_cast<std::size_t>(comm->size));
  std::vector<const void*> sources;
  for (int peer = 0; peer < comm->size; ++peer) {
    std::byte* const place = landing->data() + bytes * static_cast<std::size_t>(peer);
    if (peer != comm->rank) exchange.lines.push_back({peer, true, place, bytes});
    sources.push_back(peer == comm->rank ? own : place);
  }
  exchange.then.push_back(
      [=, keep = landing] { reduce(ops[op], dtypes[type], out, sources, static_cast<std::int64_t>(count)); });
}

}  // namespace
}  // namespace chorale::test

using namespace chorale::test;

ncclResult_t ncclGetVersion(int* version) { return *version = 22800, ncclSuccess; }
const char* ncclGetErrorString(ncclResult_t) { return "invalid usage of an emulated NCCL"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int number = 0;
  const Id mine{world().rank(), number++};
  std::memcpy(id, &mine, sizeof mine);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking) return ncclInvalidUsage;
  Id made;
  std::memcpy(&made, &id, sizeof made);
  *comm = new EmulatedComm(made, rank, size);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) { return *state = comm->poll(), ncclSuccess; }
ncclResult_t ncclCommFinalize(ncclComm_t comm) { return comm->poll() == ncclSuccess ? ncclSuccess : ncclInvalidUsage; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return delete comm, ncclSuccess; }
// It stays where it is: messages may still come for it.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->is_aborted = true;
  Machine::here().advance();
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() { return ++calls.depth, ncclSuccess; }
ncclResult_t ncclGroupEnd() {
  if (--calls.depth > 0) return ncclSuccess;
  return calls.comm->launch(std::exchange(calls.exchange, {}), calls.stream);
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  const std::size_t bytes = count * width_of(type);
  return call(comm, stream, [&](Exchange& exchange) {
    exchange.lines.push_back({peer, false, Machine::here().reached(from, bytes), bytes});
  });
}

ncclResult_t ncclRecv(void* into, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = count * width_of(type);
  return call(comm, stream, [&](Exchange& exchange) {
    exchange.lines.push_back({peer, true, Machine::here().reached(into, bytes), bytes});
  });
}

ncclResult_t ncclReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  if (comm->rank != root) return ncclSend(in, count, type, root, comm, stream);
  const std::size_t bytes = count * width_of(type);
  return call(comm, stream, [&](Exchange& exchange) {
    const Machine& machine = Machine::here();
    add_sum(exchange, comm, machine.reached(in, bytes), machine.reached(out, bytes), count, type, op);
  });
}

ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  if (comm->rank != root) return ncclRecv(out, count, type, root, comm, stream);
  ncclGroupStart();
  for (int peer = 0; peer < comm->size; ++peer)
    if (peer != root) ncclSend(in, count, type, peer, comm, stream);
  const std::size_t bytes = count * width_of(type);
  call(comm, stream, [&](Exchange& exchange) {
    const Machine& machine = Machine::here();
    exchange.then.push_back([from = machine.reached(in, bytes), to = machine.reached(out, bytes), bytes] {
      if (bytes > 0) std::memmove(to, from, bytes);
    });
  });
  return ncclGroupEnd();
}

ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  ncclGroupStart();
  for (int root = 0; root < comm->size; ++root) ncclReduce(in, out, count, type, op, root, comm, stream);
  return ncclGroupEnd();
}

ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t each, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  const auto* const blocks = static_cast<const std::byte*>(in);
  ncclGroupStart();
  for (int root = 0; root < comm->size; ++root)
    ncclReduce(blocks + static_cast<std::size_t>(root) * each * width_of(type), out, each, type, op, root, comm, stream);
  return ncclGroupEnd();
}

ncclResult_t ncclAllGather(const void* in, void* out, std::size_t each, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  auto* const blocks = static_cast<std::byte*>(out);
  ncclGroupStart();
  for (int root = 0; root < comm->size; ++root)
    ncclBroadcast(in, blocks + static_cast<std::size_t>(root) * each * width_of(type), each, type, root, comm, stream);
  return ncclGroupEnd();
}
