// How long kernels take on the host, beside the bytes and operations that they need.
//
//   KernelTimer     a table with a row for each kernel and shape: calls, seconds, bytes, flops
//   Kernel          lives as long as a kernel runs. If a tensor is phantom, it notes the kernel's work; else it adds the
//                   kernel's time to the queue's timer, if there is one
//
// A kernel that calls another is charged only for its own time. Without a timer, a Kernel costs two comparisons. All kernels
// of a timer are called from one thread; they may use more threads.
#pragma once
#include <map>
#include <string_view>
#include <vector>

#include "src/base/clock.hpp"
#include "src/math/queue.hpp"

namespace chorale {

class KernelTimer {
 public:
  struct Key {
    std::string_view name;                        // a literal
    std::int64_t m = 0, n = 0, k = 0, batch = 1;  // as in KernelWork
    auto operator<=>(const Key&) const = default;
  };
  struct Row {
    std::int64_t calls = 0;
    double seconds = 0, bytes = 0, flops = 0;
  };

  explicit KernelTimer(const Clock& clock) : clock_(clock) {}
  void begin(std::string_view name, const KernelWork& work) { open_.push_back({name, work, clock_.seconds()}); }
  void end();
  const std::map<Key, Row>& rows() const { return rows_; }
  void clear() { rows_.clear(); }

 private:
  struct Open {
    std::string_view name;
    KernelWork work;
    double began, inside = 0;  // `inside`: the seconds of the kernels that this one called
  };
  const Clock& clock_;
  std::vector<Open> open_;
  std::map<Key, Row> rows_;
};

class Kernel {
 public:
  // `nothing`: the kernel has nothing to compute, so its work is only noted.
  Kernel(const Queue& queue, std::string_view name, const KernelWork& work, bool nothing) : nothing_(nothing) {
    if (nothing_ || queue.timer) begin(queue, name, work);
  }
  // A kernel that reads or writes each of these tensors once. A tensor that it reads and writes is given twice. Null
  // pointers are ignored.
  template <class... Tensors>
  Kernel(const Queue& queue, std::string_view name, const Tensors&... tensors) : nothing_((is_phantom(tensors) || ...)) {
    if (nothing_ || queue.timer) begin(queue, name, on_bytes((bytes_of(tensors) + ...)));
  }
  ~Kernel() {
    if (timer_) timer_->end();
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  bool skips() const { return nothing_; }

  static KernelWork on_bytes(double bytes, Work work = Work::elements) {
    return {.work = work, .amount = bytes, .bytes = bytes};
  }

 private:
  static double bytes_of(const Tensor& tensor) { return static_cast<double>(tensor.bytes()); }
  static double bytes_of(const Tensor* tensor) { return tensor ? bytes_of(*tensor) : 0; }
  static bool is_phantom(const Tensor& tensor) { return tensor.phantom(); }
  static bool is_phantom(const Tensor* tensor) { return tensor && tensor->phantom(); }
  void begin(const Queue& queue, std::string_view name, const KernelWork& work);

  KernelTimer* timer_ = nullptr;
  bool nothing_;
};

}  // namespace chorale
