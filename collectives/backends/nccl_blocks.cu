// NcclBlocks has at most hundreds of blocks, so a linear search is fast enough.
#include "collectives/backends/nccl_blocks.cuh"

#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <cerrno>

#include "src/base/round_up.hpp"

namespace chorale::nccl {
namespace {

constexpr std::int64_t page = 2 << 20, shared_bytes = 4 * page, alignment = 512;

std::int64_t rounded(std::int64_t bytes) { return round_up(std::max<std::int64_t>(bytes, 1), alignment); }

}  // namespace

NcclBlocks::~NcclBlocks() {
  for (const auto& [start, block] : lent_) ncclMemFree(start);
}

void* NcclBlocks::take(std::int64_t bytes) {
  sweep();
  if (bytes >= page) {
    const auto made = lend(bytes);
    return made == lent_.end() ? nullptr : made->first;
  }
  for (auto& [start, block] : lent_) {
    const std::int64_t first = block.parts ? block.parts->take(rounded(bytes), alignment) : -1;
    if (first >= 0) return start + first;
  }
  const auto made = lend(shared_bytes);
  if (made == lent_.end()) return nullptr;
  return made->first + made->second.parts.emplace(shared_bytes).take(rounded(bytes), alignment);
}

// The next owner of the returned memory can write to it without using a stream (src/memory/async_copy.hpp). So, like
// cudaFree, this function waits until the device no longer uses the memory.
void NcclBlocks::give_back(void* place, std::int64_t bytes) noexcept {
  auto& [start, block] = *find(place);
  if (!block.parts) {
    block.is_over = true;
    return sweep();
  }
  cudaStreamSynchronize(nullptr);
  block.parts->give_back(static_cast<std::byte*>(place) - start, rounded(bytes));
}

std::optional<NcclBlock> NcclBlocks::holding(const void* place) {
  const auto found = find(place);
  if (found == lent_.end()) return {};
  return NcclBlock{found->first, found->second.bytes};
}

NcclBlocks::Map::iterator NcclBlocks::find(const void* place) {
  auto* const at = static_cast<std::byte*>(const_cast<void*>(place));
  const auto after = lent_.upper_bound(at);
  if (after == lent_.begin()) return lent_.end();
  const auto before = std::prev(after);
  return at < before->first + before->second.bytes ? before : lent_.end();
}

NcclBlocks::Map::iterator NcclBlocks::lend(std::int64_t bytes) {
  void* start = nullptr;
  if (ncclMemAlloc(&start, static_cast<std::size_t>(bytes)) != ncclSuccess) {
    cudaGetLastError();  // clears the error
    errno = ENOMEM;
    return lent_.end();
  }
  return lent_.emplace(static_cast<std::byte*>(start), Lent{bytes}).first;
}

// Frees the blocks that their users have returned. Unlike cudaFree, ncclMemFree does not wait for Chorale's kernels that
// still use the memory. So this function waits for these kernels. No collective uses the memory at this time, because a
// buffer outlives its calls.
void NcclBlocks::sweep() noexcept {
  if (std::ranges::none_of(lent_, [](const auto& entry) { return entry.second.is_over; })) return;
  cudaStreamSynchronize(nullptr);
  std::erase_if(lent_, [this](const auto& entry) {
    const auto& [start, block] = entry;
    return block.is_over && let_go_({start, block.bytes}) && ncclMemFree(start) == ncclSuccess;
  });
}

}  // namespace chorale::nccl
