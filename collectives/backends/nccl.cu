// NCCL on NVIDIA GPUs; part of the plugin. A thin executor: what is sent, received and summed was decided by nccl.cpp.
//
//   stream of a group   ─ wait for the caller ─[ sends, receives ]─ sum ─[ sends, receives ]─ sum ─ … ─ event ─
//
// No call here blocks: NCCL is asked not to, and what it has not done yet is asked for again by ready().
#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "collectives/backends/nccl_link.hpp"
#include "src/math/device_kernels.hpp"

namespace chorale {

extern "C" CudaMemoryFunction chorale_cuda_memory;
extern "C" CudaKernelsFunction chorale_cuda_kernels;

namespace {

void check(cudaError_t result, const char* call) {
  if (result != cudaSuccess)
    device_error(std::string(call) + ": " + cudaGetErrorString(result), "on the stream of a group of NCCL's",
                 "an error of an earlier kernel may show here: CUDA_LAUNCH_BLOCKING=1 shows where it happened");
}

void check(ncclResult_t result, const char* call, const std::string& numbers, ncclComm_t comm = nullptr) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const char* more = ncclGetLastError(comm);
  device_error(std::string(call) + ": " + ncclGetErrorString(result),
               numbers + (more && *more ? ", " + std::string(more) : ""),
               "NCCL_DEBUG=WARN in the environment tells more; mind the log of each rank");
}

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return ncclFloat32;
    case DType::f64: return ncclFloat64;
    case DType::f16: return ncclFloat16;
    case DType::bf16: return ncclBfloat16;
    case DType::i32: return ncclInt32;
    case DType::i64: return ncclInt64;
    default: return ncclUint8;
  }
}

ncclRedOp_t operator_of(Redop op) {
  switch (op) {
    case Redop::prod: return ncclProd;
    case Redop::min: return ncclMin;
    case Redop::max: return ncclMax;
    default: return ncclSum;  // an average is divided at the end
  }
}

class Link;

// What all groups of the device share. A communicator that nobody needs any more is finalized, which sees off what is still on its way and
// wants the same of its other ranks: that is not waited for, until all ends.
class Gpu final : public NcclDevice {
 public:
  explicit Gpu(int index) : memory_(chorale_cuda_memory(index)) { check(cudaSetDevice(index), "cudaSetDevice"); }
  ~Gpu() override;
  Memory& memory() override { return *memory_; }
  NcclId new_id() override;
  std::unique_ptr<NcclLink> connect(const NcclId& id, int rank, int size) override;

  Allocator workspace() { return {*memory_, ledger_}; }
  void finalize(ncclComm_t comm) noexcept;
  const DeviceKernels& kernels = *chorale_cuda_kernels();

 private:
  bool sweep() noexcept;  // true when none is left

  const std::unique_ptr<Memory> memory_;
  Ledger ledger_;
  std::vector<ncclComm_t> finalized_;
};

// What both kinds of work share: begin behind the caller, end with an event.
class Work : public NcclWork {
 public:
  Work(Link& link, const Plan& plan);
  ~Work() override { cudaEventDestroy(event_); }
  void start(void* input, void* output) override;
  bool enqueue() override;
  bool over() override;

 protected:
  virtual bool enqueue_next() = 0;  // false: there was no more

  Link& link_;
  const Plan plan_;
  void *input_ = nullptr, *output_ = nullptr;

 private:
  cudaEvent_t event_ = nullptr;
  bool begun_ = false;
};

class Link final : public NcclLink {
 public:
  Link(Gpu& gpu, const NcclId& id, int rank, int size)
      : gpu(gpu), numbers_("rank " + std::to_string(rank) + " of " + std::to_string(size)) {
    ncclUniqueId unique;
    static_assert(sizeof unique == sizeof id);
    std::memcpy(&unique, &id, sizeof unique);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    chorale::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    chorale::check(ncclCommInitRankConfig(&comm, size, unique, rank, &config), "ncclCommInitRankConfig", numbers_);
  }
  ~Link() override {
    if (comm) gpu.finalize(comm);
    cudaStreamDestroy(stream);
  }

  bool ready() override {
    if (!comm)
      device_error("NCCL's communicator of this group was aborted", numbers_, "see which rank gave up first, and why");
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError");
    check(state, "a call of NCCL's");
    return state == ncclSuccess;
  }
  std::unique_ptr<NcclWork> prepare(const Plan& plan, MessagePlan steps, std::vector<MessageGroup> groups) override;
  std::unique_ptr<NcclWork> prepare_native(const Plan& plan) override;
  void abort() noexcept override {
    if (comm) ncclCommAbort(std::exchange(comm, nullptr));
  }

  void check(ncclResult_t result, const char* call) const { chorale::check(result, call, numbers_, comm); }
  Queue queue() const { return {.device = &gpu.kernels, .stream = stream}; }
  Gpu& gpu;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;

 private:
  std::string numbers_;
};

Work::Work(Link& link, const Plan& plan) : link_(link), plan_(plan) {
  chorale::check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

void Work::start(void* input, void* output) {
  input_ = input, output_ = output;
  begun_ = false;
}

bool Work::enqueue() {
  if (!begun_) {
    chorale::check(cudaEventRecord(event_, cudaStreamLegacy), "cudaEventRecord");
    chorale::check(cudaStreamWaitEvent(link_.stream, event_, 0), "cudaStreamWaitEvent");
    begun_ = true;
  }
  do
    if (!link_.ready()) return false;
  while (enqueue_next());
  const auto count = plan_.problem.output_count();
  if (plan_.divide) link_.gpu.kernels.divide(plan_.dtype, output_, count, plan_.problem.size, link_.queue());
  chorale::check(cudaEventRecord(event_, link_.stream), "cudaEventRecord");
  return true;
}

bool Work::over() {
  const cudaError_t state = cudaEventQuery(event_);
  if (state != cudaErrorNotReady) chorale::check(state, "cudaEventQuery");
  if (state == cudaErrorNotReady) link_.ready();  // it throws when a peer's end of a line broke
  return state == cudaSuccess;
}

// A schedule: groups of messages, with sums and copies between them.
class ScheduledWork final : public Work {
 public:
  ScheduledWork(Link& link, const Plan& plan, MessagePlan steps, std::vector<MessageGroup> groups)
      : Work(link, plan), flat_(std::move(steps)), groups_(std::move(groups)) {
    if (flat_.workspace_bytes > 0) workspace_ = link.gpu.workspace().allocate(flat_.workspace_bytes, Category::workspace);
  }
  void start(void* input, void* output) override {
    Work::start(input, output);
    bases_ = {static_cast<std::byte*>(input), static_cast<std::byte*>(output), static_cast<std::byte*>(workspace_.data())};
    next_ = 0;
  }

 private:
  void* at(Spot spot) const { return bases_[static_cast<std::size_t>(spot.place)] + spot.byte; }

  // By turns the messages of a group and what follows them: that can only be put on the stream when NCCL has put the messages there.
  bool enqueue_next() override {
    if (next_ == 2 * groups_.size()) return false;
    const MessageGroup& group = groups_[next_ / 2];
    if (next_++ % 2 == 0)
      exchange(group.messages);
    else
      for (const int step : group.steps) sum_or_copy(flat_.steps[static_cast<std::size_t>(step)]);
    return true;
  }

  void exchange(const std::vector<int>& messages) {
    if (messages.empty()) return;
    link_.check(ncclGroupStart(), "ncclGroupStart");
    for (const int m : messages) {
      const FlatMessage& message = flat_.messages[static_cast<std::size_t>(m)];
      const auto bytes = static_cast<std::size_t>(message.bytes);
      if (message.incoming)
        link_.check(ncclRecv(at(message.spot), bytes, ncclUint8, message.peer, link_.comm, link_.stream), "ncclRecv");
      else
        link_.check(ncclSend(at(message.spot), bytes, ncclUint8, message.peer, link_.comm, link_.stream), "ncclSend");
    }
    link_.check(ncclGroupEnd(), "ncclGroupEnd");
  }

  void sum_or_copy(const FlatStep& step) {
    std::array<const void*, most_addends> addends;
    const auto count = static_cast<std::size_t>(step.addends.last - step.addends.first);
    for (std::size_t i = 0; i < count; ++i) addends[i] = at(flat_.spots[static_cast<std::size_t>(step.addends.first) + i]);
    const auto bytes = static_cast<std::size_t>(step.count * size_of(flat_.dtype));
    if (step.kind == Kind::copy)
      chorale::check(cudaMemcpyAsync(at(step.dst), addends[0], bytes, cudaMemcpyDeviceToDevice, link_.stream),
                     "cudaMemcpyAsync");
    else
      link_.gpu.kernels.reduce(flat_.op, flat_.dtype, at(step.dst), {addends.data(), count}, step.count, link_.queue());
  }

  const MessagePlan flat_;
  const std::vector<MessageGroup> groups_;
  Buffer workspace_;
  std::array<std::byte*, 3> bases_{};
  std::size_t next_ = 0;
};

// NCCL's own collectives. Those that want blocks of one size are made of a broadcast or a reduction for each block where sizes differ.
class NativeWork final : public Work {
 public:
  using Work::Work;
  void start(void* input, void* output) override {
    Work::start(input, output);
    called_ = false;
  }

 private:
  bool enqueue_next() override {
    if (std::exchange(called_, true)) return false;
    const Problem& p = plan_.problem;
    const auto all = static_cast<std::size_t>(p.blocks.total()), own = static_cast<std::size_t>(p.blocks.count(p.rank));
    const ncclDataType_t type = type_of(plan_.dtype);
    const ncclRedOp_t op = operator_of(plan_.op);
    const auto [comm, stream] = std::pair(link_.comm, link_.stream);
    const bool even = p.blocks.count(0) == p.blocks.count(p.size - 1) && p.blocks.total() == p.size * p.blocks.count(0);
    if (p.what == Collective::broadcast)
      link_.check(ncclBroadcast(input_, output_, all, type, p.root, comm, stream), "ncclBroadcast");
    else if (p.what == Collective::reduce)
      link_.check(ncclReduce(input_, output_, all, type, op, p.root, comm, stream), "ncclReduce");
    else if (p.what == Collective::all_gather && even)
      link_.check(ncclAllGather(input_, output_, own, type, comm, stream), "ncclAllGather");
    else if (p.what == Collective::reduce_scatter && even)
      link_.check(ncclReduceScatter(input_, output_, own, type, op, comm, stream), "ncclReduceScatter");
    else if (p.what == Collective::all_gather || p.what == Collective::reduce_scatter)
      by_blocks(type, op);
    else  // a barrier too: it is over when everybody's token is in
      link_.check(ncclAllReduce(input_, output_, all, type, op, comm, stream), "ncclAllReduce");
    return true;
  }

  void by_blocks(ncclDataType_t type, ncclRedOp_t op) {
    const Problem& p = plan_.problem;
    const auto block_of = [&](void* vector, int block) {
      return static_cast<std::byte*>(vector) + p.blocks.first(block) * size_of(plan_.dtype);
    };
    link_.check(ncclGroupStart(), "ncclGroupStart");
    for (int b = 0; b < p.size; ++b) {
      const auto count = static_cast<std::size_t>(p.blocks.count(b));
      if (p.what == Collective::all_gather)
        link_.check(ncclBroadcast(input_, block_of(output_, b), count, type, b, link_.comm, link_.stream), "ncclBroadcast");
      else
        link_.check(ncclReduce(block_of(input_, b), output_, count, type, op, b, link_.comm, link_.stream), "ncclReduce");
    }
    link_.check(ncclGroupEnd(), "ncclGroupEnd");
  }

  bool called_ = false;
};

std::unique_ptr<NcclWork> Link::prepare(const Plan& plan, MessagePlan steps, std::vector<MessageGroup> groups) {
  return std::make_unique<ScheduledWork>(*this, plan, std::move(steps), std::move(groups));
}

std::unique_ptr<NcclWork> Link::prepare_native(const Plan& plan) { return std::make_unique<NativeWork>(*this, plan); }

NcclId Gpu::new_id() {
  ncclUniqueId unique;
  check(ncclGetUniqueId(&unique), "ncclGetUniqueId", "for a group's communicator");
  NcclId id;
  std::memcpy(&id, &unique, sizeof id);
  return id;
}

std::unique_ptr<NcclLink> Gpu::connect(const NcclId& id, int rank, int size) {
  sweep();
  return std::make_unique<Link>(*this, id, rank, size);
}

void Gpu::finalize(ncclComm_t comm) noexcept {
  const ncclResult_t result = ncclCommFinalize(comm);
  if (result == ncclSuccess || result == ncclInProgress)
    finalized_.push_back(comm);
  else
    ncclCommAbort(comm);
}

bool Gpu::sweep() noexcept {
  std::erase_if(finalized_, [](ncclComm_t comm) {
    ncclResult_t state = ncclSuccess;
    ncclCommGetAsyncError(comm, &state);
    if (state != ncclInProgress) ncclCommDestroy(comm);
    return state != ncclInProgress;
  });
  return finalized_.empty();
}

// Whoever is gone without a word is not waited for.
Gpu::~Gpu() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!sweep() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (ncclComm_t comm : finalized_) ncclCommAbort(comm);
}

}  // namespace

extern "C" int chorale_nccl_probe(char* text) {
  int version = 0;
  if (const ncclResult_t result = ncclGetVersion(&version); result != ncclSuccess) {
    std::snprintf(text, 256, "ncclGetVersion: %s", ncclGetErrorString(result));
    return 1;
  }
  std::snprintf(text, 256, "NCCL %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
  return 0;
}

extern "C" NcclDevice* chorale_nccl_device(int index) { return new Gpu(index); }

}  // namespace chorale
