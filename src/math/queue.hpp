// A Queue says where a kernel runs. On the host, `threads` threads run the kernel, and the kernel has finished when the call
// returns. On a GPU, the kernel is enqueued in a CUDA stream. Kernels take floating-point types. Kernels do nothing if a
// tensor is phantom (has no storage).
#pragma once

#include "src/memory/tensor.hpp"

namespace chorale {

struct DeviceKernels;  // src/math/device_kernels.hpp
class KernelTimer;     // src/math/kernel_timer.hpp

// The kinds of work that kernels record for a plan. In a plan, kernels run on phantom tensors and compute nothing. Matrix
// products and attention are counted in flops, and all other kernels in bytes read and written.
enum class Work : std::uint8_t { product, attention, elements, update };
inline constexpr std::size_t kinds_of_work = 4;

// Marks the matrix products of the model's head, which some programs treat differently from other products. In such
// programs, the head's products use 16 bits even if all other products use 8 bits. The loss also makes more passes over the
// logits.
enum class OfHead : std::uint8_t { no, logits, gradients };

// The work of one kernel. If the time of the kernel depends on its shape, the shape is also recorded:
//
//   product     [m, k] · [k, n]
//   attention   m queries and n keys of width k, in each of `batch` heads of samples
struct KernelWork {
  Work work = Work::elements;
  double amount = 0;  // flops or bytes
  double bytes = 0;   // bytes read and written
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  // Whether the kernel computes gradients: the backward pass of attention, or a product that adds to a weight gradient. Also
  // true for the computation of the gradient norm before the update.
  bool gradient = false;
  OfHead head = OfHead::no;
};

// A part of a training step: a pass of one micro-batch through one chunk of the model, or the work after all passes.
struct StepPart {
  enum class Kind : std::uint8_t { forward, backward, weights, rest } kind = Kind::rest;
  std::int64_t micro_batch = 0, chunk = 0;
};

class Meter : public CopyMeter {
 public:
  virtual void note(const KernelWork& kernel) = 0;
  virtual void begins(const StepPart& part) = 0;
  // Between these two calls, the program starts or continues the update of a bucket, and returns without waiting for it.
  virtual void begins_update(std::size_t) {}
  virtual void leaves_update() {}
  virtual void waits_for_update(std::size_t) {}  // the program waits until the update of this bucket is over
};

struct Queue {
  int threads = 1;
  const DeviceKernels* device = nullptr;  // if it is null, kernels run on the host
  void* stream = nullptr;                 // a cudaStream_t of `device`, or null for the default stream
  Meter* meter = nullptr;                 // records the work of kernels on phantom tensors, unless it is null
  OfHead head = OfHead::no;               // the part of the head that the next kernels belong to
  KernelTimer* timer = nullptr;           // null: kernels are not timed

  void note(Work work, double amount) const { note({.work = work, .amount = amount, .bytes = amount}); }
  void note(KernelWork kernel) const {
    kernel.head = head;
    if (meter) meter->note(kernel);
  }
};

// Maps a tensor's rows to tokens of the step's global batch. A rank has consecutive samples, starting at `first_sample`, and
// `tokens` tokens of each sample. Each token is one row. The tensor begins at row `first_row` of the rank's rows. Random
// numbers are keyed by the global token index, so a mask does not depend on how the batch is split.
//
//   place      a token's index in its sequence: consecutive from first_token, or given by the table `places`; ascending
//   position   a token's index in its document; a sequence that is not packed is one document
struct Tokens {
  std::int64_t first_sample = 0, sequence = 1;  // `sequence` is the number of tokens in a complete sample
  std::int64_t first_token = 0, tokens = 1;     // first token and number of tokens of this rank's part of each sample
  std::int64_t first_row = 0;
  const std::int32_t* places = nullptr;     // one element per row of all samples, in the memory of the kernel's device; if
                                            // it is null, tokens are consecutive
  const std::int32_t* positions = nullptr;  // null: equal to the places

  constexpr std::int64_t place(std::int64_t row) const {
    return places ? places[first_row + row] : first_token + (first_row + row) % tokens;
  }
  constexpr std::int64_t position(std::int64_t row) const { return positions ? positions[first_row + row] : place(row); }
  // Returns the place of the first token of the row's document.
  constexpr std::int64_t start(std::int64_t row) const { return place(row) - position(row); }
  constexpr std::int64_t sample(std::int64_t row) const { return first_sample + (first_row + row) / tokens; }
  constexpr std::int64_t global(std::int64_t row) const { return sample(row) * sequence + place(row); }
  constexpr std::int64_t end() const { return places ? sequence : first_token + tokens; }  // one past the last place
};

// Calls f(Type<T>{}) for a floating-point dtype.
template <class F>
decltype(auto) visit_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f(Type<float>{});
    case DType::f64: return f(Type<double>{});
    case DType::f16: return f(Type<f16>{});
    case DType::bf16: return f(Type<bf16>{});
    default: misuse(std::string("this kernel takes floating types, not ") + name_of(dtype), std::source_location::current());
  }
}

}  // namespace chorale
