// Records when kernels run, in which layers they run, and how many bytes and operations they need.
//
//   KernelTimer     is notified when a layer or a kernel begins and ends; a Queue can have a timer
//   KernelTable     adds up host times in one row per kernel and shape, with calls, seconds, bytes and flops
//   Kernel          exists while a kernel runs. If a tensor is phantom, it records the kernel's work. Otherwise it notifies
//                   the queue's timer, if there is one
//   LayerSpan       exists while a layer computes
//
// Without a timer, a Kernel costs two comparisons. All kernels of a timer are called from one thread, but a kernel can use
// several threads.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <chorale/clock.hpp>
#include "src/math/queue.hpp"

namespace chorale {

inline double flops_of(const KernelWork& work) {
  return work.work == Work::product || work.work == Work::attention ? work.amount : 0;
}

// Layers and kernels are nested. begin() and enter() return whether end() must also be called.
class KernelTimer {
 public:
  virtual ~KernelTimer() = default;
  virtual bool begin(const Queue& queue, std::string_view name, const KernelWork& work) = 0;
  virtual bool enter(const Queue& /*queue*/, const std::string& /*layer*/) { return false; }
  virtual void end() = 0;  // ends the innermost open layer or kernel
};

// A kernel that calls a second kernel is charged only for its own time. Device kernels are still running when their host
// function returns, so KernelTable does not time device kernels.
class KernelTable final : public KernelTimer {
 public:
  struct Key {
    std::string_view name;                        // a string literal
    std::int64_t m = 0, n = 0, k = 0, batch = 1;  // the shape, as in KernelWork
    auto operator<=>(const Key&) const = default;
  };
  struct Row {
    std::int64_t calls = 0;
    double seconds = 0, bytes = 0, flops = 0;
  };

  explicit KernelTable(const Clock& clock) : clock_(clock) {}
  bool begin(const Queue& queue, std::string_view name, const KernelWork& work) override;
  void end() override;
  const std::map<Key, Row>& rows() const { return rows_; }
  void clear() { rows_.clear(); }

 private:
  struct Open {
    std::string_view name;
    KernelWork work;
    double began, inside = 0;  // `inside` is the time of the kernels that this kernel called, in s
  };
  const Clock& clock_;
  std::vector<Open> open_;
  std::map<Key, Row> rows_;
};

class Kernel {
 public:
  // If `nothing` is true, the kernel has nothing to compute, and its work is only recorded.
  Kernel(const Queue& queue, std::string_view name, const KernelWork& work, bool nothing) : nothing_(nothing) {
    if (nothing_ || queue.timer) begin(queue, name, work);
  }
  // This constructor is for a kernel that reads or writes each of these tensors once. A tensor that is both read and written
  // is passed twice. Null pointers are ignored.
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

class LayerSpan {
 public:
  LayerSpan(const Queue& queue, const std::string& layer)
      : timer_(queue.timer && queue.timer->enter(queue, layer) ? queue.timer : nullptr) {}
  ~LayerSpan() {
    if (timer_) timer_->end();
  }
  LayerSpan(const LayerSpan&) = delete;
  LayerSpan& operator=(const LayerSpan&) = delete;

 private:
  KernelTimer* const timer_;
};

}  // namespace chorale
