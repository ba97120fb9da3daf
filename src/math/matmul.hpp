// A matrix product by oneDNN that is prepared once per shape.
//
//   y[M,N] = x[M,K]·w[K,N] (+ bias[N])      or      y += x·w
//
// Each operand can be stored transposed; a transposed operand is read with strides and not copied. Sums are f32 and rounded
// once.
//
// oneDNN compiles code for each shape, which takes 0.1 to 0.2 ms. Alternatively, the number of tokens (the rows of a stored
// x) can be left open. One prepared product then works for any number of tokens. Experts need this, because their numbers of
// rows differ between calls. In f32, and for y += xᵀ·w, a product for any number of tokens is at least as fast for most
// shapes. For a 16-bit result, such a product needs an f32 buffer, which oneDNN allocates in each call.
#pragma once
#include <compare>
#include <memory>

#include <chorale/element.hpp>

namespace chorale {

struct Matmul {
  std::int64_t m, n, k;
  bool x_transposed = false, w_transposed = false;  // true: `x` is stored as [K,M], or `w` as [N,K]
  DType input = DType::f32;                         // the type of x, w and bias
  DType output = DType::f32;
  bool bias = false;
  bool accumulate = false;  // computes y += x·w
  bool any_tokens = false;  // whether the number of tokens (`m`, or `k` if `x` is transposed) is left open
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
