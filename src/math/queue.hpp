// A Queue says where a kernel runs. On the host, `threads` threads run the kernel, which is done when the call returns.
// On a GPU the kernel is enqueued in a CUDA stream. Kernels take floating types; they do nothing if a tensor is phantom
// (has no storage).
#pragma once
#include <initializer_list>
#include <utility>

#include "src/memory/tensor.hpp"

namespace chorale {

struct DeviceKernels;  // src/math/device_kernels.hpp
class KernelTimer;     // src/math/kernel_timer.hpp

// Learns what the kernels would do if their tensors had storage. A kernel on phantom tensors does nothing but note its work.
// Products and attention are counted in flops, the others in bytes read and written.
enum class Work : std::uint8_t { product, attention, elements, update };
inline constexpr std::size_t kinds_of_work = 4;

// Products of the head differ from others in some programs: they keep 16 bits, and the loss makes more passes over logits.
enum class OfHead : std::uint8_t { no, logits, gradients };

// One kernel. Where its time depends on its shape, the shape is noted too:
//
//   product     [m, k] · [k, n]
//   attention   in each of `batch` heads of samples, m queries and n keys of width k
struct KernelWork {
  Work work = Work::elements;
  double amount = 0;  // flops or bytes
  double bytes = 0;   // read and written
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  // Attention: this is its backward pass. Product: it adds to the gradient of a weight. Update: this is not the update, but
  // the norm of gradients before it.
  bool gradient = false;
  OfHead head = OfHead::no;
};

// A part of a step: a pass of one micro-batch through one chunk of the model, or what comes after all passes.
struct StepPart {
  enum class Kind : std::uint8_t { forward, backward, weights, rest } kind = Kind::rest;
  std::int64_t micro_batch = 0, chunk = 0;
};

class Meter : public CopyMeter {
 public:
  virtual void note(const KernelWork& kernel) = 0;
  virtual void begins(const StepPart& part) = 0;
};

struct Queue {
  int threads = 1;
  const DeviceKernels* device = nullptr;  // null: on the host
  void* stream = nullptr;                 // a cudaStream_t of that device; null: the default stream
  Meter* meter = nullptr;                 // null: nobody asks for the work of kernels on phantom tensors
  OfHead head = OfHead::no;               // what the next kernels belong to
  KernelTimer* timer = nullptr;           // null: nobody asks how long kernels take

  void note(Work work, double amount) const { note({.work = work, .amount = amount, .bytes = amount}); }
  void note(KernelWork kernel) const {
    kernel.head = head;
    if (meter) meter->note(kernel);
  }
};

// Maps a tensor's rows to tokens of the step's global batch. A rank has consecutive samples from `first_sample` on, and
// `tokens` tokens of each sample, one per row. The tensor begins at row `first_row` of these rows. Random numbers are keyed
// by the global token, so a mask does not depend on how the batch is split.
//
//   place      a token's index in its sequence: from first_token on, or as the table `places` says, in ascending order
//   position   its index in its document; sequences that are not packed are one document
struct Tokens {
  std::int64_t first_sample = 0, sequence = 1;  // `sequence`: the number of tokens in a whole sample
  std::int64_t first_token = 0, tokens = 1;     // this rank's part of each sample
  std::int64_t first_row = 0;
  const std::int32_t* places = nullptr;     // per row of all samples, where the kernel runs; null: consecutive tokens
  const std::int32_t* positions = nullptr;  // null: equal to the places

  constexpr std::int64_t place(std::int64_t row) const {
    return places ? places[first_row + row] : first_token + (first_row + row) % tokens;
  }
  constexpr std::int64_t position(std::int64_t row) const { return positions ? positions[first_row + row] : place(row); }
  constexpr std::int64_t start(std::int64_t row) const { return place(row) - position(row); }  // place of its document
  constexpr std::int64_t sample(std::int64_t row) const { return first_sample + (first_row + row) / tokens; }
  constexpr std::int64_t global(std::int64_t row) const { return sample(row) * sequence + place(row); }
  constexpr std::int64_t end() const { return places ? sequence : first_token + tokens; }  // after the last place
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
