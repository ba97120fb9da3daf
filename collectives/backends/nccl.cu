// The part of the CUDA plugin that opens a device for NCCL, and connects, polls and finalizes the device's groups:
//
//   new_id ─▶ connect ─▶ poll ready() ─▶ work (nccl_work.cu) ─▶ finalize ─▶ destroyed, once all ranks have finalized
//                                           └────▶ abort         after an error: stops kernels that wait for peers
//
// No function here waits for peers, except ~Gpu: NCCL runs in nonblocking mode, and ready() polls whether the last NCCL call
// has completed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "collectives/backends/nccl_link.cuh"

namespace chorale {

extern "C" CudaMemoryFunction chorale_cuda_memory;
extern "C" CudaKernelsFunction chorale_cuda_kernels;

namespace nccl {

void check(cudaError_t result, const char* call) {
  if (result != cudaSuccess)
    device_error(std::string(call) + ": " + cudaGetErrorString(result), "on the stream of an NCCL group",
                 "an error of an earlier kernel may show here: CUDA_LAUNCH_BLOCKING=1 shows where it happened");
}

void check(ncclResult_t result, const char* call, const std::string& numbers, ncclComm_t comm) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const char* more = ncclGetLastError(comm);
  device_error(std::string(call) + ": " + ncclGetErrorString(result),
               numbers + (more && *more ? ", " + std::string(more) : ""),
               "set NCCL_DEBUG=WARN in the environment and read the log of each rank");
}

// ── the device ──

Gpu::Gpu(int index)
    : kernels(*chorale_cuda_kernels()),
      blocks([this](const NcclBlock& b) { return std::ranges::all_of(links, [&](Link* l) { return l->let_go(b.start); }); }),
      known_(cuda_memory_of(blocks, index)),
      plain_(chorale_cuda_memory(index)) {
  check(cudaSetDevice(index), "cudaSetDevice");
  void* const trial = blocks.take(1);
  registers_ = trial;
  if (trial) blocks.give_back(trial, 1);
}

// Waits at most 5 s for the finalization of communicators, because a rank that died never finalizes.
Gpu::~Gpu() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!sweep() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (ncclComm_t comm : finalized_) ncclCommAbort(comm);
}

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

// ── a group ──

Link::Link(Gpu& gpu, const NcclId& id, int rank, int size)
    : gpu(gpu), numbers_("rank " + std::to_string(rank) + " of " + std::to_string(size)) {
  ncclUniqueId unique;
  static_assert(sizeof unique == sizeof id);
  std::memcpy(&unique, &id, sizeof unique);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  nccl::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  nccl::check(ncclCommInitRankConfig(&comm, size, unique, rank, &config), "ncclCommInitRankConfig", numbers_);
  gpu.links.push_back(this);
}

// All calls of the group have completed, so NCCL no longer uses the registered blocks.
Link::~Link() {
  std::erase(gpu.links, this);
  for (const auto& [block, handle] : met_) ncclCommDeregister(comm, handle);
  if (comm) gpu.finalize(comm);
  cudaStreamDestroy(stream);
}

bool Link::ready() {
  if (!comm)
    device_error("NCCL's communicator of this group was aborted", numbers_, "see which rank gave up first, and why");
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError");
  check(state, "an NCCL call");
  return state == ncclSuccess;
}

bool Link::meet(const void* place) {
  const std::optional<NcclBlock> block = gpu.blocks.holding(place);
  if (!block || met_.contains(block->start)) return block.has_value();
  void* handle = nullptr;
  check(ncclCommRegister(comm, block->start, static_cast<std::size_t>(block->bytes), &handle), "ncclCommRegister");
  met_[block->start] = handle;
  return true;
}

bool Link::let_go(const std::byte* block) noexcept {
  const auto found = met_.find(block);
  if (found == met_.end()) return true;
  ncclResult_t state = ncclSuccess;
  if (ncclCommGetAsyncError(comm, &state) == ncclSuccess && state == ncclInProgress) return false;
  ncclCommDeregister(comm, found->second);
  met_.erase(found);
  return true;
}

void Link::abort() noexcept {
  met_.clear();  // the registrations end with the communicator
  if (comm) ncclCommAbort(std::exchange(comm, nullptr));
}

}  // namespace nccl

extern "C" int chorale_nccl_probe(char* text) {
  int version = 0;
  if (const ncclResult_t result = ncclGetVersion(&version); result != ncclSuccess) {
    std::snprintf(text, 256, "ncclGetVersion: %s", ncclGetErrorString(result));
    return 1;
  }
  std::snprintf(text, 256, "NCCL %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
  return 0;
}

extern "C" NcclDevice* chorale_nccl_device(int index) { return new nccl::Gpu(index); }

}  // namespace chorale
