// One matrix product by oneDNN, prepared once per shape; later runs allocate nothing.
//
//   y[M,N] = x[M,K]·w[K,N] (+ bias[N])      or      y += x·w
//
// Each operand may be stored transposed; it is read with strides, not copied. Sums are f32 and rounded once.
// Preparing a shape compiles code for it, which takes milliseconds.
#pragma once
#include <compare>
#include <memory>

#include "src/memory/dtype.hpp"

namespace chorale {

struct Matmul {
  std::int64_t m, n, k;
  bool x_transposed = false, w_transposed = false;  // x is stored as [K,M], w as [N,K]
  DType input = DType::f32;                         // the type of x, w and bias
  DType output = DType::f32;
  bool bias = false;
  bool accumulate = false;  // y +=
  int threads = 1;
  auto operator<=>(const Matmul&) const = default;
};

class Matmuls {
 public:
  Matmuls();
  ~Matmuls();
  bool supports(DType input) const;  // whether this processor and this version of oneDNN support the type
  void run(const Matmul& matmul, const void* x, const void* w, const void* bias, void* y);

 private:
  class Ready;
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace chorale
