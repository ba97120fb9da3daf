// What the plugin's files on NCCL have in common: the device of a rank, and the link of a group, which its calls go over.
//
//   Gpu ─┬─ Link   a communicator and a stream ─┬─ ScheduledWork   a call as the program planned it
//        ├─ Link                                └─ NativeWork      a call as NCCL has it
//        ├─ Blocks                                  its memory, which links tell NCCL of
//        └─ communicators that nobody needs any more
#pragma once
#include <cuda_runtime.h>
#include <nccl.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collectives/backends/nccl_blocks.cuh"
#include "collectives/backends/nccl_link.hpp"
#include "src/math/device_kernels.hpp"

namespace chorale::nccl {

void check(cudaError_t result, const char* call);
void check(ncclResult_t result, const char* call, const std::string& numbers, ncclComm_t comm = nullptr);

class Link;

// What all groups of the device share. A communicator that nobody needs any more is finalized, which sees off what is still on its way and
// wants the same of its other ranks: that is not waited for, until all ends.
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

  Allocator workspace(bool registered) { return {memory(registered), ledger_}; }
  void finalize(ncclComm_t comm) noexcept;
  const DeviceKernels& kernels;
  Blocks blocks;
  std::vector<Link*> links;

 private:
  bool sweep() noexcept;  // true when none is left

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

  // Whether a place of a call lies in a block. NCCL is told of it once; only while it is ready.
  bool meet(const void* place);
  bool let_go(const std::byte* block) noexcept;  // false: NCCL is at work, and may be looking at it

  void check(ncclResult_t result, const char* call) const { nccl::check(result, call, numbers_, comm); }
  Queue queue() const { return {.device = &gpu.kernels, .stream = stream}; }
  Gpu& gpu;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;

 private:
  std::string numbers_;
  std::map<const std::byte*, void*> met_;  // blocks, and what NCCL calls them
};

}  // namespace chorale::nccl
