// Helpers for tests of device kernels. Each kernel is called twice, first on host tensors and then on copies of these
// tensors on the device. Afterwards, all tensors passed to the kernel are compared. The comparison includes tensors that the
// kernel must not change.
//
//   gpu.compare({x, y}, tolerance(dtype), [&](const auto& t, const Queue& queue) { gelu_forward(t[0], t[1], queue); });
//
// Tests tagged [gpu] run on the plugin's first device. Under `make test`, the first device is emulated
// (CHORALE_CUDA_PLUGIN); otherwise it is a real device. Without a device, these tests are skipped.
#pragma once
#include <optional>

#include "src/math/device_kernels.hpp"
#include "src/math/kernel.hpp"
#include "tests/device.hpp"
#include "tests/math/kernels.hpp"

namespace chorale {

// Whether all elements are bitwise equal. Any NaN matches any other NaN, because a GPU returns the NaN 7fff ffff, but a CPU
// keeps the payload of an operand.
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
    if (!test::has_device(plugin_)) return;
    kernels_ = &cuda_kernels(plugin_);
    memory_ = cuda_memory(plugin_, 0);
    numerics_ = numerics_on(&plugin_, NumericsKind::fast);
    exact_ = numerics_on(&plugin_, NumericsKind::exact);
    allocator_.emplace(*memory_, ledger_);
  }

  explicit operator bool() const { return kernels_ != nullptr; }
  Queue queue() const { return {.device = kernels_}; }
  Numerics& numerics() { return *numerics_; }
  Numerics& exact() { return *exact_; }
  const DeviceKernels& kernels() const { return *kernels_; }

  bool emulated() const { return plugin_.find<std::int64_t()>("chorale_emulated_waits") != nullptr; }

  Allocator& allocator() { return *allocator_; }
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

  // With a tolerance of 0, the values must be identical.
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

// The tolerance for kernels that compute in the same order as the host. In f32, the results of such kernels are
// bit-identical to the host's results, because both use Chorale's own exp and similar functions. For all other types, device
// code uses the GPU's exp.
inline double nearness(DType dtype) { return dtype == DType::f32 ? 0 : tolerance(dtype); }

// Sizes in elements. One size exceeds a thread block. Some sizes are not multiples of the vector (pack) that a thread loads
// in one instruction.
inline constexpr std::int64_t device_sizes[] = {1, 7, 64, 300, 4099};

}  // namespace chorale
