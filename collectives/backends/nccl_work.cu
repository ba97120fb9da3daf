// The part of the CUDA plugin that enqueues a call on a group's stream. The program has decided which data are sent,
// received and summed (nccl.cpp). There are two kinds of calls:
//
//   ScheduledWork   ─ wait for the caller ─[ sends, receives ]─ sums, copies ─[ sends, receives ]─ … ─ event ─
//   NativeWork      ─ wait for the caller ─[ ncclAllReduce ]─ event ─
//
// In both kinds, enqueue() enqueues each part only after NCCL has accepted the previous part. Until then, enqueue() returns
// without waiting, and is called again later. So no work is lost, and enqueue() never blocks.
#include <array>
#include <utility>

#include "collectives/backends/nccl_link.cuh"
#include "src/memory/event_query.cuh"

namespace chorale::nccl {
namespace {

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
    default: return ncclSum;  // averages are divided at the end
  }
}

// The base class of both kinds of calls. A call begins after the caller's work and ends with an event.
class LinkWork : public NcclWork {
 public:
  LinkWork(Link& link, const Plan& plan);
  ~LinkWork() override { cudaEventDestroy(event_); }
  void start(void* input, void* output) override;
  bool enqueue() override;
  bool over() override;

 protected:
  virtual bool enqueue_next() = 0;  // enqueues the next part; returns false if there are no more parts

  Link& link_;
  const Plan plan_;
  void *input_ = nullptr, *output_ = nullptr;
  bool registered_ = false;  // whether this call's buffers are registered with NCCL; equal on all ranks

 private:
  cudaEvent_t event_ = nullptr;
  bool begun_ = false;
};

LinkWork::LinkWork(Link& link, const Plan& plan) : link_(link), plan_(plan) {
  nccl::check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

void LinkWork::start(void* input, void* output) {
  input_ = input;
  output_ = output;
  const Problem& p = plan_.problem;
  registered_ = (p.input_count() == 0 || link_.meet(input)) && (p.output_count() == 0 || link_.meet(output));
  begun_ = false;
}

bool LinkWork::enqueue() {
  if (!begun_) {
    nccl::check(cudaEventRecord(event_, cudaStreamLegacy), "cudaEventRecord");
    nccl::check(cudaStreamWaitEvent(link_.stream, event_, 0), "cudaStreamWaitEvent");
    begun_ = true;
  }
  do
    if (!link_.ready()) return false;
  while (enqueue_next());
  const auto count = plan_.problem.output_count();
  if (plan_.divide) link_.gpu.kernels.divide(plan_.dtype, output_, count, plan_.problem.size, link_.queue());
  nccl::check(cudaEventRecord(event_, link_.stream), "cudaEventRecord");
  return true;
}

bool LinkWork::over() {
  const bool is_over = event_completed(event_, [](cudaError_t state) { nccl::check(state, "cudaEventQuery"); });
  if (!is_over) link_.ready();  // throws if NCCL reports an error, such as a broken connection
  return is_over;
}

// A call that runs a schedule: groups of messages, with sums and copies between the groups.
class ScheduledWork final : public LinkWork {
 public:
  ScheduledWork(Link& link, const Plan& plan, MessagePlan steps, std::vector<MessageGroup> groups)
      : LinkWork(link, plan), flat_(std::move(steps)), groups_(std::move(groups)) {}
  void start(void* input, void* output) override {
    LinkWork::start(input, output);
    make_workspace();
    bases_ = {static_cast<std::byte*>(input), static_cast<std::byte*>(output), static_cast<std::byte*>(workspace_.data())};
    next_ = 0;
  }

 private:
  // If the call's buffers are registered, the workspace is registered too, because peers send from their buffers to this
  // workspace.
  void make_workspace() {
    if (flat_.workspace_bytes == 0) return;
    if (workspace_.memory() != &link_.gpu.memory(registered_))
      workspace_ = link_.gpu.workspace(registered_).allocate(flat_.workspace_bytes, Category::workspace);
    if (registered_) link_.meet(workspace_.data());
  }
  void* at(BufferAddress spot) const { return bases_[static_cast<std::size_t>(spot.place)] + spot.byte; }

  // Each invocation enqueues one part: either the messages of a group, or the sums and copies that follow these messages.
  // NCCL must have enqueued the messages before the sums and copies are enqueued.
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
      nccl::check(cudaMemcpyAsync(at(step.dst), addends[0], bytes, cudaMemcpyDeviceToDevice, link_.stream),
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

// A call that runs one of NCCL's own collectives. NCCL's all-gather and reduce-scatter need equal blocks. If blocks are
// unequal, this class calls one ncclBroadcast or ncclReduce per block instead.
class NativeWork final : public LinkWork {
 public:
  using LinkWork::LinkWork;
  void start(void* input, void* output) override {
    LinkWork::start(input, output);
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
    else  // all_reduce or barrier; a barrier is an all_reduce of tokens
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

}  // namespace

std::unique_ptr<NcclWork> Link::prepare(const Plan& plan, MessagePlan steps, std::vector<MessageGroup> groups) {
  return std::make_unique<ScheduledWork>(*this, plan, std::move(steps), std::move(groups));
}

std::unique_ptr<NcclWork> Link::prepare_native(const Plan& plan) { return std::make_unique<NativeWork>(*this, plan); }

}  // namespace chorale::nccl
