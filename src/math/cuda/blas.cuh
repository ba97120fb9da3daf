// Matrix products on a device by cuBLASLt. Only this class uses the library; the tests implement the same header without
// cuBLASLt.
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

  static std::int64_t workspace_bytes();  // for one product, because products run one after another

  // Like Matmuls::run on the host; `threads` is ignored. A bias must have the type of the result, which must not be f64.
  void run(const Matmul& product, const void* x, const void* w, const void* bias, void* y, const Queue& queue);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace chorale::cuda
