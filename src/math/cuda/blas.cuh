// Matrix products on a device by cuBLASLt. Only the class Blas uses cuBLASLt. The tests implement the same header without
// cuBLASLt.
//
// bf16 and f16 products run on tensor cores with f32 sums, at about 790 TFLOP/s on an H200. Products of f32 use plain f32
// (no TF32), at about 60 TFLOP/s.
#pragma once
#include <memory>

#include "src/math/matmul.hpp"
#include "src/math/queue.hpp"

namespace chorale::cuda {

class Blas {
 public:
  Blas();
  ~Blas();

  static std::int64_t workspace_bytes();  // for a single product, because products in a stream run one after another

  // Does the same as Matmuls::run on the host; `threads` is ignored. A bias must have the type of the result. The result
  // must not be f64.
  void run(const Matmul& product, const void* x, const void* w, const void* bias, void* y, const Queue& queue);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace chorale::cuda
