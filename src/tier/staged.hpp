// A flat tensor in memory that is a copy of a tensor in a slow tier or on a device. Transfers between the two tensors run in
// the background.
//
//   Staged here(memory, there.count(), there.dtype(), Category::params);
//   here.start_read(there, traffic);  …  here.wait();  compute with here.tensor();  here.start_write(there, traffic);  …
#pragma once
#include <chorale/tier_traffic.hpp>
#include "src/memory/tensor.hpp"

namespace chorale {

// Whether a computation on device `here` needs a copy of the tensor, because the tensor is in a file or on the other side of
// a device's bus.
inline bool is_away(const Tensor& tensor, Device here) {
  if (!tensor) return false;
  return tensor.device().kind == Device::Kind::file || tensor.device().is_host() != here.is_host();
}

class Staged {
 public:
  Staged() = default;
  Staged(Allocator& memory, std::int64_t count, DType dtype, Category category);
  Staged(Tensor on_page, Category category) : tensor_(std::move(on_page)), category_(category) {}

  Staged(Staged&&) = default;
  Staged& operator=(Staged&& other) noexcept;  // swaps, so that no buffer is freed before its copy has completed

  explicit operator bool() const { return bool(tensor_); }
  const Tensor& tensor() const { return tensor_; }
  // `there` can be shorter than tensor(). The types of `there` and tensor() must be equal, except in plans (dry runs). The
  // elements must not change until wait() returns.
  void start_read(const Tensor& there, TierTraffic& traffic) { start(true, there, traffic); }
  void start_write(const Tensor& there, TierTraffic& traffic) { start(false, there, traffic); }
  void wait();  // waits for the last copy; throws if the copy failed
  bool over();  // whether the last copy has completed; never waits

 private:
  void start(bool reads, const Tensor& there, TierTraffic& traffic);
  AsyncCopy& copy_with(const Tensor& there);
  Tensor tensor_;  // declared before copy_, whose destructor waits for a copy that uses this tensor
  Category category_ = Category::workspace;
  std::unique_ptr<AsyncCopy> copy_;
};

}  // namespace chorale
