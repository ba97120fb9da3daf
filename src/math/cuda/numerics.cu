// Fast numerics on a device: cuBLASLt computes products, and kernels of the table compute all other sums. The cost of a
// product:
//
//   bytes        x, w and y once each              least time   the larger of bytes/4.8 TB/s and
//   operations   2·M·K·N                                        operations/790 TFLOP/s (bf16, f16)
#include "src/math/cuda/blas.cuh"
#include "src/math/cuda/map.cuh"
#include "src/math/cuda/numbers.cuh"
#include "src/math/fast_sums.hpp"
#include "src/math/products.hpp"

namespace chorale {
namespace cuda {
namespace {

// Adds the bias of a column to the elements of that column in y, for result types to which cuBLASLt cannot add a bias.
template <class Y, class T>
struct WithBias {
  const T* bias;
  std::int64_t columns;
  __device__ Y operator()(std::int64_t i, Y y) const { return y + static_cast<Y>(widened(bias[i % columns])); }
};

class CudaNumerics final : public FastSums {
 public:
  void product(const Tensor& x, const Tensor& w, bool transposed, const Tensor* bias, const Tensor& y,
               const Queue& queue) override {
    const ProductShape shape = product_shape(x, w, transposed, bias, y);
    if (shape.nothing) return;
    const bool fits = bias && y.dtype() == x.dtype() && x.dtype() != DType::f64;
    blas_.run({.m = shape.m,
               .n = shape.n,
               .k = shape.k,
               .w_transposed = transposed,
               .input = x.dtype(),
               .output = y.dtype(),
               .bias = fits},
              data<void>(x), data<void>(w), fits ? data<void>(*bias) : nullptr, data<void>(y), queue);
    if (bias && !fits) add_bias(*bias, y, shape.n, queue);
  }

  void add_outer(const Tensor& x, const Tensor& dy, const Leaves&, const Tensor& dw, SumSite&, const Queue& queue) override {
    const ProductShape shape = outer_shape(x, dy, dw);
    if (shape.nothing) return;
    blas_.run({.m = shape.k,
               .n = shape.n,
               .k = shape.m,
               .x_transposed = true,
               .input = x.dtype(),
               .output = dw.dtype(),
               .accumulate = true},
              data<void>(x), data<void>(dy), nullptr, data<void>(dw), queue);
  }

 private:
  static void add_bias(const Tensor& bias, const Tensor& y, std::int64_t columns, const Queue& queue) {
    visit_floating(bias.dtype(), [&]<class T>(Type<T>) {
      using Y = Statistic<T>;  // the type of y; see product_shape
      Y* out = data<Y>(y);
      map(queue, WithBias<Y, T>{data<T>(bias), columns}, y.count(), out, static_cast<const Y*>(out));
    });
  }

  Blas blas_;
};

}  // namespace
}  // namespace cuda

extern "C" Numerics* chorale_cuda_numerics() { return new cuda::CudaNumerics; }
extern "C" std::int64_t chorale_cuda_workspace() { return cuda::Blas::workspace_bytes(); }

}  // namespace chorale
