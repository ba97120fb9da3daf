// Calls CUB's radix sort and allocates its workspace.
#include "src/math/cuda/sort.cuh"

#include <cub/device/device_radix_sort.cuh>

#include "src/math/cuda/device.cuh"

namespace chorale::cuda {

void sort_upper(const std::uint64_t* keys, std::int64_t count, int bits, std::uint64_t* sorted, const Queue& queue) {
  std::size_t bytes = 0;
  const auto sort = [&](void* scratch) {
    check(cub::DeviceRadixSort::SortKeys(scratch, bytes, keys, sorted, count, 32, 32 + bits, stream_of(queue)));
  };
  sort(nullptr);  // only returns the workspace size
  const Scratch<std::byte> scratch(static_cast<std::int64_t>(bytes), queue);
  sort(scratch.get());
}

}  // namespace chorale::cuda
