// Implements NCCL's calls with messages on MPI_COMM_WORLD, on which no other code sends messages. The messages are copies of
// the buffers in host memory. Any MPI call can transfer bytes, even while the host cannot access device memory.
#include <nccl.h>

#include <cstring>
#include <memory>
#include <utility>

#include "src/base/mpi.hpp"
#include "src/math/reduction.hpp"
#include "tests/cuda/emulation/far.hpp"
#include "tests/cuda/emulation/nccl_memory.hpp"
#include "tests/cuda/emulation/streams.hpp"

namespace emulation {
namespace {

using chorale::DType, chorale::Redop;
constexpr DType dtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};
constexpr Redop ops[] = {Redop::sum, Redop::prod, Redop::min, Redop::max};
constexpr int polls_until_done = 3, most_ranks = 64, most_comms = 30000;

std::size_t bytes_of(std::size_t count, ncclDataType_t type) {
  return count * static_cast<std::size_t>(chorale::size_of(dtypes[type]));
}

int rank_in_world() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// The contents of a communicator's id. `maker` is the rank that created the communicator, and `number` counts the
// communicators of this rank.
struct Id {
  int maker, number;
};

// Messages that were started together, and the functions to call when all are complete.
struct Exchange {
  struct Line {
    int peer;
    bool incoming;
    void* place;
    std::vector<std::byte> copy;  // the message, plus a byte that says whether the sender's buffer is registered
    std::byte registered;
  };
  std::vector<Line> lines;
  std::vector<std::function<void()>> then;
};

struct Calls {  // calls between ncclGroupStart and ncclGroupEnd
  int depth = 0;
  EmulatedComm* comm = nullptr;
  cudaStream_t stream = nullptr;
  Exchange exchange;
} calls;

}  // namespace
}  // namespace emulation

using namespace emulation;

class EmulatedComm {
 public:
  EmulatedComm(Id id, int rank, int size)
      : rank(rank),
        size(size),
        tag_((id.number * most_ranks + id.maker) % most_comms),
        world_ranks_(static_cast<std::size_t>(size), -1) {
    world_ranks_[static_cast<std::size_t>(rank)] = rank_in_world();
    if (rank == 0)  // rank 0 receives from all ranks, then sends to all
      for (int peer = 1; peer < size; ++peer) receive(who_[peer], 2, MPI_ANY_SOURCE);
    else {
      mine_[0] = rank;
      mine_[1] = rank_in_world();
      send(mine_, 2, id.maker);
      receive(world_ranks_.data(), size, id.maker);
    }
  }

  ncclResult_t poll() {
    advance();
    if (!is_connected_) return connect() ? ncclSuccess : ncclInProgress;
    if (!pending_) return ncclSuccess;
    if (--polls_ > 0) return ncclInProgress;
    put(std::exchange(pending_, nullptr),
        [this, exchange = exchange_, requests = std::vector<MPI_Request>()]() mutable { return go_on(exchange, requests); });
    return ncclSuccess;
  }

  ncclResult_t launch(Exchange exchange, cudaStream_t stream) {
    if (!is_connected_ || pending_ || is_aborted) return ncclInvalidUsage;
    exchange_ = std::make_shared<Exchange>(std::move(exchange));
    pending_ = stream;
    polls_ = polls_until_done;
    return ncclInProgress;
  }

  bool is_at_work() const { return !is_connected_ || pending_; }

  const int rank, size;
  bool is_aborted = false;

 private:
  void send(const int* numbers, int count, int to) {
    PMPI_Isend(numbers, count, MPI_INT, to, tag_, MPI_COMM_WORLD, &set_up_.emplace_back());
  }
  void receive(int* numbers, int count, int from) {
    PMPI_Irecv(numbers, count, MPI_INT, from, tag_, MPI_COMM_WORLD, &set_up_.emplace_back());
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

  bool go_on(const std::shared_ptr<Exchange>& exchange, std::vector<MPI_Request>& requests) {
    if (is_aborted) return forget(exchange, requests);
    if (requests.empty()) requests = post(*exchange);
    int over = 0;
    PMPI_Testall(static_cast<int>(requests.size()), requests.data(), &over, MPI_STATUSES_IGNORE);
    if (!over) return false;
    const Open open;
    for (const auto& [peer, incoming, place, copy, registered] : exchange->lines) {
      if (!incoming || copy.size() == 1) continue;
      if (copy.back() != registered) misuse_of_nccl("a message's buffers are registered on one end only");
      std::memcpy(place, copy.data(), copy.size() - 1);
    }
    for (const auto& then : exchange->then) then();
    return true;
  }

  std::vector<MPI_Request> post(Exchange& exchange) const {
    const Open open;
    std::vector<MPI_Request> requests;
    for (auto& [peer, incoming, place, copy, registered] : exchange.lines) {
      const int to = world_ranks_[static_cast<std::size_t>(peer)], bytes = static_cast<int>(copy.size());
      MPI_Request& request = requests.emplace_back();
      if (!incoming && bytes > 1) std::memcpy(copy.data(), place, copy.size() - 1);
      copy.back() = registered;
      if (incoming)
        PMPI_Irecv(copy.data(), bytes, MPI_BYTE, to, tag_of(bytes), MPI_COMM_WORLD, &request);
      else
        PMPI_Issend(copy.data(), bytes, MPI_BYTE, to, tag_of(bytes), MPI_COMM_WORLD, &request);
    }
    return requests;
  }

  // The tag includes the length, so messages of different lengths never match. Ranks with mismatched calls therefore hang,
  // as with NCCL. (Otherwise Open MPI 4.1 would write a long message past the end of a short buffer.)
  int tag_of(int bytes) const { return tag_ + most_comms * (bytes % 4093); }

  // Cancels receives, which MPI supports. Sends are abandoned, and their data are never freed.
  bool forget(const std::shared_ptr<Exchange>& exchange, std::vector<MPI_Request>& requests) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (requests[i] == MPI_REQUEST_NULL) continue;
      if (exchange->lines[i].incoming) {
        PMPI_Cancel(&requests[i]);
        PMPI_Wait(&requests[i], MPI_STATUS_IGNORE);
      } else {
        PMPI_Request_free(&requests[i]);
      }
    }
    given_up_.push_back(exchange);
    return true;
  }

  const int tag_;
  std::vector<int> world_ranks_;
  int mine_[2] = {}, who_[most_ranks][2] = {};
  std::vector<MPI_Request> set_up_;
  bool has_told_ = false, is_connected_ = false;
  std::shared_ptr<Exchange> exchange_;
  cudaStream_t pending_ = nullptr;  // the stream that will run the started exchange
  std::vector<std::shared_ptr<Exchange>> given_up_;
  int polls_ = 0;
};

bool emulation::is_at_work(ncclComm_t comm) { return comm->is_at_work(); }

namespace {

// Adds a call to the current group. Without a current group, the call is a group by itself.
template <class Add>
ncclResult_t call(ncclComm_t comm, cudaStream_t stream, Add&& add) {
  ncclGroupStart();
  calls.comm = comm;
  calls.stream = stream;
  add(calls.exchange);
  return ncclGroupEnd();
}

// If `place` is a temporary buffer, `buffer` is the caller's buffer.
ncclResult_t message(int peer, bool incoming, void* place, std::size_t bytes, ncclComm_t comm, cudaStream_t stream,
                     const void* buffer = nullptr) {
  const std::byte registered{is_registered(comm, buffer ? buffer : place)};
  return call(comm, stream, [&](Exchange& exchange) {
    exchange.lines.push_back({peer, incoming, place, std::vector<std::byte>(bytes + 1), registered});
  });
}

std::byte* block(void* blocks, int number, std::size_t bytes) {
  return static_cast<std::byte*>(blocks) + static_cast<std::size_t>(number) * bytes;
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = 22800;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) { return "invalid usage of an emulated NCCL"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int number = 0;
  const Id mine{rank_in_world(), number++};
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

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = comm->poll();
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (knows_something(comm)) misuse_of_nccl("a communicator with registered memory is finalized");
  return comm->poll() == ncclSuccess ? ncclSuccess : ncclInvalidUsage;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
// Does not delete the communicator, because messages for it can still arrive.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->is_aborted = true;
  forget_all(comm);
  advance();
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++calls.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (--calls.depth > 0) return ncclSuccess;
  return calls.comm->launch(std::exchange(calls.exchange, {}), calls.stream);
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return message(peer, false, const_cast<void*>(from), bytes_of(count, type), comm, stream);
}

ncclResult_t ncclRecv(void* into, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return message(peer, true, into, bytes_of(count, type), comm, stream);
}

// The root receives all contributions and adds its own.
ncclResult_t ncclReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  if (comm->rank != root) return ncclSend(in, count, type, root, comm, stream);
  const std::size_t bytes = bytes_of(count, type);
  const auto landing = std::make_shared<std::vector<std::byte>>(bytes * static_cast<std::size_t>(comm->size));
  std::vector<const void*> sources;
  ncclGroupStart();
  for (int peer = 0; peer < comm->size; ++peer) {
    void* const place = block(landing->data(), peer, bytes);
    if (peer != root) message(peer, true, place, bytes, comm, stream, in);
    sources.push_back(peer == root ? in : place);
  }
  call(comm, stream, [&](Exchange& exchange) {
    exchange.then.push_back(
        [=, keep = landing] { chorale::reduce(ops[op], dtypes[type], out, sources, static_cast<std::int64_t>(count)); });
  });
  return ncclGroupEnd();
}

ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  if (comm->rank != root) return ncclRecv(out, count, type, root, comm, stream);
  ncclGroupStart();
  for (int peer = 0; peer < comm->size; ++peer)
    if (peer != root) ncclSend(in, count, type, peer, comm, stream);
  call(comm, stream, [&](Exchange& exchange) {
    exchange.then.push_back([=, bytes = bytes_of(count, type)] {
      if (bytes > 0) std::memmove(out, in, bytes);
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
  ncclGroupStart();
  for (int root = 0; root < comm->size; ++root)
    ncclReduce(block(const_cast<void*>(in), root, bytes_of(each, type)), out, each, type, op, root, comm, stream);
  return ncclGroupEnd();
}

ncclResult_t ncclAllGather(const void* in, void* out, std::size_t each, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  ncclGroupStart();
  for (int root = 0; root < comm->size; ++root)
    ncclBroadcast(in, block(out, root, bytes_of(each, type)), each, type, root, comm, stream);
  return ncclGroupEnd();
}
