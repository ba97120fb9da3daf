// One matrix product by oneDNN, prepared once per shape.
//
//   y[M,N] = x[M,K]·w[K,N] (+ bias[N])      or      y += x·w
//
// Each operand may be stored transposed; it is read with strides, not copied. Sums are f32 and rounded once.
//
// Preparing a shape compiles code for it, which takes 0.1 to 0.2 ms. The number of tokens (the rows of a stored x) may be
// left open instead. One prepared product then serves any number of tokens. Experts need this, because their numbers of rows
// differ from call to call. In f32, and for y += xᵀ·w, this is as fast or faster for most shapes. A result of 16 bits then
// needs an f32 buffer, which oneDNN allocates in each call.
#pragma once
#include <compare>
#include <memory>

#include <chorale/element.hpp>

namespace chorale {

struct Matmul {
  std::int64_t m, n, k;
  bool x_transposed = false, w_transposed = false;  // x is stored as [K,M], w as [N,K]
  DType input = DType::f32;                         // the type of x, w and bias
  DType output = DType::f32;
  bool bias = false;
  bool accumulate = false;  // y +=
  bool any_tokens = false;  // leaves the number of tokens open: m, or k if x is transposed
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
