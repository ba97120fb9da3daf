// The elements of a slice where the host can load and store them: the slice itself, or of a device a copy, which goes back if it was to
// be written. Whoever reads or writes single numbers says so here, once for every memory.
//
//   on_host(totals.slice(), Use::both, [&](const Slice& here) { static_cast<double*>(here.data)[1] += 1; });
//   with_values<float>(tensor, Use::read, [&](std::span<float> values) { … });
//
// On the host it costs nothing. On a device reading waits until what was asked of it is done: not for inner loops. Writing up to a mebibyte
// waits for nothing.
#pragma once
#include <span>
#include <vector>

#include "src/memory/tensor.hpp"

namespace chorale {

enum class Use { read, write, both };

template <class F>
void on_host(const Slice& slice, Use use, F&& f) {
  if (slice.device.is_host()) return f(slice);
  require(slice.memory, "a slice on {} does not know its memory", name_of(slice.device));
  std::vector<std::byte> copy(static_cast<std::size_t>(slice.bytes()));
  if (use != Use::write) slice.memory->copy_out(copy.data(), slice.data, slice.bytes());
  f(Slice{copy.data(), slice.count, slice.dtype});
  if (use != Use::read) slice.memory->copy_in(slice.data, copy.data(), slice.bytes());
}

template <class T, class F>
void with_values(const Tensor& tensor, Use use, F&& f) {
  require(dtype_of<T>() == tensor.dtype(), "a {} tensor was taken for {}", name_of(tensor.dtype()), name_of(dtype_of<T>()));
  require(!tensor.phantom(), "a phantom tensor of shape {} has no values", to_string(tensor.shape()));
  on_host(tensor.slice(), use,
          [&](const Slice& here) { f(std::span<T>(static_cast<T*>(here.data), static_cast<std::size_t>(here.count))); });
}

}  // namespace chorale
