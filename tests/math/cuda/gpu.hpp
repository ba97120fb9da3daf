// What tests of device kernels share. A call is made twice, on the host's tensors and on copies of them on the device, and every tensor that
// either was given is compared: what a kernel should write, and what it should leave alone.
//
//   gpu.compare({x, y}, tolerance(dtype), [&](const auto& t, const Queue& queue) { gelu_forward(t[0], t[1], queue); });
//
// Tests tagged [gpu] run on the first device of the plugin: the emulated one under `make test` (CHORALE_CUDA_PLUGIN), else a real one; where
// there is none they have nothing to do.
#pragma once
#include <optional>

#include "src/math/device_kernels.hpp"
#include "src/math/kernel.hpp"
#include "tests/math/kernels.hpp"

namespace chorale {

// The same bits; but a NaN is like any other, since a GPU makes 7fff ffff of each and a processor keeps what it was given.
inline bool same_numbers(const Tensor& a, const Tensor& b) {
  bool same = a.bytes() == b.bytes();
  visit(a.dtype(), [&]<class T>(Type<T>) {
    const auto x = a.values<T>(), y = b.values<T>();
    for (std::size_t i = 0; i < x.size() && same; ++i)
      same = std::memcmp(&x[i], &y[i], sizeof(T)) == 0 || (x[i] != x[i] && y[i] != y[i]);
  });
  return same;
}

class Gpu {
 public:
  Gpu() {
    std::string why_none;
    if (cuda_devices(plugin_, &why_none).empty()) return;
    kernels_ = &cuda_kernels(plugin_);
    memory_ = cuda_memory(plugin_, 0);
    numerics_ = numerics_on(&plugin_, "fast");
    exact_ = numerics_on(&plugin_, "exact");
    allocator_.emplace(*memory_, ledger_);
  }

  explicit operator bool() const { return kernels_ != nullptr; }
  Queue queue() const { return {.device = kernels_}; }
  Numerics& numerics() { return *numerics_; }
  Numerics& exact() { return *exact_; }
  const DeviceKernels& kernels() const { return *kernels_; }

  bool emulated() const { return plugin_.find<std::int64_t()>("chorale_emulated_waits") != nullptr; }

  Tensor empty(Shape shape, DType dtype) { return {*allocator_, std::move(shape), dtype, Category::workspace}; }
  Tensor sent(const Tensor& host) {
    const Tensor there = empty(host.shape(), host.dtype());
    kernels_->copy(there.slice().data, host.slice().data, host.bytes(), queue());
    return there;
  }
  Tensor fetched(Desk& desk, const Tensor& there) const {
    const Tensor host = desk.empty(there.shape(), there.dtype());
    kernels_->copy(host.slice().data, there.slice().data, there.bytes(), queue());
    kernels_->wait(queue());
    return host;
  }

  // With a tolerance of 0 they must be the same numbers.
  template <class Call>
  void compare(const std::vector<Tensor>& tensors, double tolerance, Call call) {
    Desk desk;
    std::vector<Tensor> here, there;
    for (const Tensor& tensor : tensors) {
      here.push_back(copy_of(desk, tensor));
      there.push_back(sent(tensor));
    }
    call(here, Queue{1});
    call(there, queue());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Tensor found = fetched(desk, there[i]);
      INFO("tensor " << i << " of the call, " << to_string(found.shape()) << " " << name_of(found.dtype()));
      if (tolerance == 0)
        CHECK(same_numbers(found, here[i]));
      else
        CHECK(distance(doubles(found), doubles(here[i])) <= tolerance);
    }
  }

 private:
  DevicePlugin plugin_;
  Ledger ledger_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Numerics> numerics_, exact_;
  std::optional<Allocator> allocator_;
  const DeviceKernels* kernels_ = nullptr;
};

// f32 has the host's bits wherever every operation and its order is ours; the other types take the processor's exp.
inline double nearness(DType dtype) { return dtype == DType::f32 ? 0 : tolerance(dtype); }

// Longer than a block of threads, and no multiple of what a thread takes at once, beside some that are.
inline constexpr std::int64_t device_sizes[] = {1, 7, 64, 300, 4099};

}  // namespace chorale
