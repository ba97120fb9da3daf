// The classes that the NCCL files of the CUDA plugin share: a rank's device (Gpu), and a group's communicator and stream
// (Link).
//
//   Gpu ─┬─ Link   a communicator and a stream ─┬─ ScheduledWork   a call planned by the program
//        ├─ Link                                └─ NativeWork      one of NCCL's own collectives
//        ├─ Blocks                                  blocks of device memory, which links register with NCCL
//        └─ communicators that are no longer needed
#pragma once
#include <cuda_runtime.h>
#include <nccl.h>

#include <map>
#include <vector>

#include "collectives/backends/nccl_blocks.cuh"
#include "collectives/backends/nccl_link.hpp"
#include "src/math/device_kernels.hpp"

namespace chorale::nccl {

void check(cudaError_t result, const char* call);
void check(ncclResult_t result, const char* call, const std::string& numbers, ncclComm_t comm = nullptr);

class Link;

// A rank's device, and the state that is shared by all groups on this device. A communicator that is no longer needed is
// finalized. ncclCommFinalize completes outstanding operations. The finalization is complete only when all ranks of the
// communicator have called ncclCommFinalize. So no function except ~Gpu waits for the finalization.
class Gpu final : public NcclDevice {
 public:
  explicit Gpu(int index);
  ~Gpu() override;
  Memory& memory() override { return memory(registers_); }
  Memory& memory(bool registered) { return registered ? *known_ : *plain_; }
  bool registers() const override { return registers_; }
  void register_nothing() override { registers_ = false; }
  NcclId new_id() override;
  std::unique_ptr<NcclLink> connect(const NcclId& id, int rank, int size) override;

  Allocator workspace(bool registered) { return {memory(registered), ledger_}; }  // allocates workspace
  void finalize(ncclComm_t comm) noexcept;
  const DeviceKernels& kernels;
  NcclBlocks blocks;
  std::vector<Link*> links;

 private:
  bool sweep() noexcept;  // destroys finalized communicators; returns true if none is left

  bool registers_;
  const std::unique_ptr<Memory> known_, plain_;
  Ledger ledger_;
  std::vector<ncclComm_t> finalized_;
};

class Link final : public NcclLink {
 public:
  Link(Gpu& gpu, const NcclId& id, int rank, int size);
  ~Link() override;
  bool ready() override;
  std::unique_ptr<NcclWork> prepare(const Plan& plan, MessagePlan steps, std::vector<MessageGroup> groups) override;
  std::unique_ptr<NcclWork> prepare_native(const Plan& plan) override;
  void abort() noexcept override;

  // Whether the address `place` of a call's buffer is in a block. If so, this function registers the block with NCCL, unless
  // the block is registered already. Call this function only while ready().
  bool meet(const void* place);
  bool let_go(const std::byte* block) noexcept;  // deregisters a block; returns false if NCCL could be using it

  void check(ncclResult_t result, const char* call) const { nccl::check(result, call, numbers_, comm); }
  Queue queue() const { return {.device = &gpu.kernels, .stream = stream}; }
  Gpu& gpu;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;

 private:
  std::string numbers_;
  std::map<const std::byte*, void*> met_;  // registered blocks and their NCCL handles
};

}  // namespace chorale::nccl
