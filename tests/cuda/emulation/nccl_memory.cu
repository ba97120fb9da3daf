// Keeps a list of the memory that ncclMemAlloc has returned, and checks every call against this list.
#include "tests/cuda/emulation/nccl_memory.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "tests/cuda/emulation/far.hpp"
#include "tests/cuda/emulation/streams.hpp"

namespace emulation {
namespace {

struct Lent {
  std::size_t bytes;
  std::map<ncclComm_t, void*> known_to;  // communicators that have registered the block → handles of the registrations
};
struct Memory {
  std::map<const std::byte*, Lent> lent;
  std::int64_t registrations = 0;  // number of all registrations since the start
};
Memory& memory() {
  static Memory one;  // one per process, like the emulated device
  return one;
}

Lent* holding(const void* place, std::size_t bytes = 1) {
  auto& lent = memory().lent;
  const auto* const at = static_cast<const std::byte*>(place);
  const auto after = lent.upper_bound(at);
  if (after == lent.begin()) return nullptr;
  auto& [start, block] = *std::prev(after);
  return at + bytes <= start + block.bytes ? &block : nullptr;
}

}  // namespace

void misuse_of_nccl(const char* what) {
  std::fprintf(stderr, "emulated NCCL: %s\n", what);
  std::abort();
}

bool is_registered(ncclComm_t comm, const void* place) {
  const Lent* const block = holding(place);
  return block && block->known_to.contains(comm);
}

bool knows_something(ncclComm_t comm) {
  for (const auto& [start, block] : memory().lent)
    if (block.known_to.contains(comm)) return true;
  return false;
}

void forget_all(ncclComm_t comm) {
  for (auto& [start, block] : memory().lent) block.known_to.erase(comm);
}

}  // namespace emulation

using namespace emulation;

// Returns the number of communicators with which the block at this address is registered. For a null address, returns the
// number of registrations since the start.
extern "C" std::int64_t chorale_emulated_registrations(const void* place) {
  if (!place) return memory().registrations;
  const Lent* const block = holding(place);
  return block ? static_cast<std::int64_t>(block->known_to.size()) : 0;
}

// If EMULATED_NCCL_LENDS is "no", this call fails, as with a driver without virtual memory management.
ncclResult_t ncclMemAlloc(void** place, std::size_t bytes) {
  const char* const lends = std::getenv("EMULATED_NCCL_LENDS");
  if (lends && *lends == 'n') return ncclInvalidUsage;
  if (cudaMalloc(place, bytes) != cudaSuccess) return ncclInvalidUsage;
  memory().lent[static_cast<std::byte*>(*place)] = {bytes, {}};
  return ncclSuccess;
}

// Returns without waiting for kernels and copies that still use the memory.
ncclResult_t ncclMemFree(void* place) {
  const auto found = memory().lent.find(static_cast<std::byte*>(place));
  if (found == memory().lent.end()) misuse_of_nccl("freed memory was not lent");
  if (!found->second.known_to.empty()) misuse_of_nccl("freed memory is still registered with a communicator");
  memory().lent.erase(found);
  count_wait();
  give_back(place);
  return ncclSuccess;
}

ncclResult_t ncclCommRegister(ncclComm_t comm, void* place, std::size_t bytes, void** handle) {
  Lent* const block = holding(place, bytes);
  if (!block) misuse_of_nccl("registered memory was not lent");
  if (is_at_work(comm)) misuse_of_nccl("memory is registered with a communicator that is at work");
  if (block->known_to.contains(comm)) misuse_of_nccl("memory is registered twice");
  *handle = reinterpret_cast<void*>(++memory().registrations);
  block->known_to[comm] = *handle;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle) {
  if (is_at_work(comm)) misuse_of_nccl("memory is deregistered from a communicator that is at work");
  for (auto& [start, block] : memory().lent) {
    const auto known = block.known_to.find(comm);
    if (known == block.known_to.end() || known->second != handle) continue;
    block.known_to.erase(known);
    return ncclSuccess;
  }
  misuse_of_nccl("deregistered memory is not registered");
}
