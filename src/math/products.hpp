// Matrix products of tensors on the host, by oneDNN or in tiles (exact/chain_products.hpp).
//
//   product     y[M,N] = x[M,K]·w (+ bias[N])     w is [K,N], or [N,K] if transposed; y has the type of x, or f32
//   add_outer   dw[K,N] += xᵀ[K,M]·dy[M,N]        dw is f32 (f64 for f64)
//
// The first dim of x, y and dy counts rows; all other dims together form the columns. Tiles compute products of 16-bit types
// that the processor or oneDNN cannot multiply, and some products with few rows. The tiles widen 16-bit elements during
// packing, sum in f32 and round once. f64 is used only by tests and takes the plain loops of reference/product.hpp.
#pragma once
#include <string>

#include "src/math/matmul.hpp"
#include "src/math/queue.hpp"

namespace chorale {

// The sizes of a product after its tensors have been checked. `nothing`: there is nothing to compute.
struct ProductShape {
  std::int64_t m, n, k;
  bool nothing;
};
ProductShape product_shape(const Tensor& x, const Tensor& w, bool transposed, const Tensor* bias, const Tensor& y);
ProductShape outer_shape(const Tensor& x, const Tensor& dy, const Tensor& dw);

std::string product_library();  // "oneDNN 2.6.3"

class Products {
 public:
  void product(const Tensor& x, const Tensor& w, bool transposed, const Tensor* bias, const Tensor& y, const Queue& queue);
  void add_outer(const Tensor& x, const Tensor& dy, const Tensor& dw, const Queue& queue);

 private:
  Matmuls matmuls_;
};

}  // namespace chorale
