// Access from the host to the elements of a slice. Each function passes a slice on the host directly to the callable f. For
// a slice on a device, f gets a host copy, which is written back afterwards unless `use` is `read`. All code that reads or
// writes single elements uses these functions.
//
//   on_host(totals.slice(), Use::both, [&](const Slice& here) { static_cast<double*>(here.data)[1] += 1; });
//   with_values<float>(tensor, Use::read, [&](std::span<float> values) { … });
//   in_pieces(tensor.slice(), Use::read, [&](const Slice& here, std::int64_t first) { save(here, first); });
//
// The access costs nothing for a slice on the host. A read from a device waits for all device work enqueued before it, so
// reads should stay out of inner loops. A write of up to 1 MiB to a device does not wait.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "src/memory/tensor.hpp"

namespace chorale {

enum class Use { read, write, both };

template <class F>
void on_host(const Slice& slice, Use use, F&& f) {
  if (slice.device.is_host()) return f(slice);
  require(slice.memory, "a slice on {} has no memory set", name_of(slice.device));
  std::vector<std::byte> copy(static_cast<std::size_t>(slice.bytes()));
  if (use != Use::write) slice.memory->copy_out(copy.data(), slice.data, slice.bytes());
  f(Slice{copy.data(), slice.count, slice.dtype});
  if (use != Use::read) slice.memory->copy_in(slice.data, copy.data(), slice.bytes());
}

// Splits the slice into chunks (pieces) and calls f(here, first) for each chunk in order. A chunk has `here.count` elements,
// starting at element `first` of the slice. A slice on the host is a single chunk. On a device or in a tier, a chunk has at
// most 1 MiB. A slice that is larger than the free host memory can therefore be saved and loaded.
template <class F>
void in_pieces(const Slice& slice, Use use, F&& f) {
  const std::int64_t most = slice.device.is_host() ? slice.count : (1 << 20) / size_of(slice.dtype);
  for (std::int64_t first = 0; first < slice.count; first += most)
    on_host(slice.narrow(first, std::min(most, slice.count - first)), use, [&](const Slice& here) { f(here, first); });
}

template <class T, class F>
void with_values(const Tensor& tensor, Use use, F&& f) {
  require(dtype_of<T>() == tensor.dtype(), "a {} tensor was accessed as {}", name_of(tensor.dtype()),
          name_of(dtype_of<T>()));
  require(!tensor.phantom(), "a phantom tensor of shape {} has no values", to_string(tensor.shape()));
  on_host(tensor.slice(), use,
          [&](const Slice& here) { f(std::span<T>(static_cast<T*>(here.data), static_cast<std::size_t>(here.count))); });
}

}  // namespace chorale
