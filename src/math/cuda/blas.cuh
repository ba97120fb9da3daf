// Matrix products on a device, by cuBLASLt. This class is all that the rest knows of it; the tests have another behind the same header.
//
// bf16 and f16 run on tensor cores with sums in f32, about 790 TFLOP/s of them on an H200; f32 is f32 (no TF32), about 60.
#pragma once
#include <memory>

#include "src/math/matmul.hpp"
#include "src/math/queue.hpp"

namespace chorale::cuda {

class Blas {
 public:
  Blas();
  ~Blas();

  static std::int64_t workspace_bytes();  // in which products work, one after the other

  // As Matmuls on the host, whose `threads` stay unused. A bias is added to a result of the same type, f64 excepted.
  void run(const Matmul& product, const void* x, const void* w, const void* bias, void* y, const Queue& queue);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace chorale::cuda
