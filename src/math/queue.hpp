// Where a kernel runs: on the host, at once, with so many threads; or on a GPU, by its own kernels, when the stream comes to it. And which
// elements a kernel takes: those of floating types; phantom tensors have none, so kernels leave them alone.
#pragma once
#include <initializer_list>
#include <utility>

#include "src/memory/tensor.hpp"

namespace chorale {

struct DeviceKernels;  // src/math/device_kernels.hpp

struct Queue {
  int threads = 1;
  const DeviceKernels* device = nullptr;  // null on the host
  void* stream = nullptr;                 // a cudaStream_t of that device; null is its default stream
};

// Which tokens of the step's global batch the rows of a tensor are: `tokens` of each sequence from `first_token`, of consecutive samples;
// of those, the rows from `first_row` on. Random numbers are keyed by the global place, so that a mask is the same however a batch is cut.
struct Tokens {
  std::int64_t first_sample = 0, sequence = 1;  // length of a whole sequence
  std::int64_t first_token = 0, tokens = 1;     // the part of each sequence that is here
  std::int64_t first_row = 0;

  constexpr std::int64_t position(std::int64_t row) const { return first_token + (first_row + row) % tokens; }
  constexpr std::int64_t sample(std::int64_t row) const { return first_sample + (first_row + row) / tokens; }
  constexpr std::int64_t global(std::int64_t row) const { return sample(row) * sequence + position(row); }
};

// Calls f(Type<T>{}) for the type of floating-point tensors.
template <class F>
decltype(auto) visit_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f(Type<float>{});
    case DType::f64: return f(Type<double>{});
    case DType::f16: return f(Type<f16>{});
    case DType::bf16: return f(Type<bf16>{});
    default: misuse(std::string("a kernel for floating types was given ") + name_of(dtype), std::source_location::current());
  }
}

}  // namespace chorale
