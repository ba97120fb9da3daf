// Matrix products on a device by cuBLASLt. Only this class knows the library; the tests implement the same header without
// it.
//
// bf16 and f16 run on tensor cores with f32 sums, about 790 TFLOP/s on an H200; f32 is plain f32 (no TF32), about 60
// TFLOP/s.
#pragma once
#include <memory>

#include "src/math/matmul.hpp"
#include "src/math/queue.hpp"

namespace chorale::cuda {

class Blas {
 public:
  Blas();
  ~Blas();

  static std::int64_t workspace_bytes();  // workspace of the products, which run one after another

  // As Matmuls on the host; `threads` is ignored. The bias is added if it has the type of the result, except in f64.
  void run(const Matmul& product, const void* x, const void* w, const void* bias, void* y, const Queue& queue);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace chorale::cuda
