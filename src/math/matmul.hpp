// One matrix product by oneDNN, made ready once for each shape and run from then on without allocating anything.
//
//   y[M,N] = x[M,K]·w[K,N] (+ bias[N])      or      y += x·w
//
// Each operand is rows or, where transposed, columns of what lies in memory: strides say so, nothing is copied. Sums are f32, rounded once.
// Making one ready compiles code for the shape: milliseconds.
#pragma once
#include <compare>
#include <memory>

#include "src/memory/dtype.hpp"

namespace chorale {

struct Matmul {
  std::int64_t m, n, k;
  bool x_transposed = false, w_transposed = false;  // x lies as [K,M], w as [N,K]
  DType input = DType::f32;                         // of x, w and bias
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
  bool supports(DType input) const;  // on this processor, by this version of the library
  void run(const Matmul& matmul, const void* x, const void* w, const void* bias, void* y);

 private:
  class Ready;
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace chorale
