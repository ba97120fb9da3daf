#include "src/math/products.hpp"

#include "src/base/parallel.hpp"
#include "src/math/exact/chain_products.hpp"
#include "src/math/kernel_timer.hpp"
#include "src/math/onednn.hpp"
#include "src/math/race_marks.hpp"
#include "src/math/reference/product.hpp"

namespace chorale {
namespace {

// Returns a number of tokens, at most `m`. A product that is prepared for exactly this number (matmul.hpp) computes that
// many of the `m` tokens. The product for any number of tokens computes the others. Experts therefore cause few
// preparations, although their numbers of rows change from call to call. The following numbers of tokens get a separate
// prepared product:
//
//   16-bit results       multiples of 64 tokens, because micro-batches recur; otherwise the largest multiple of 512
//   a transposed w       from 16 to 127 tokens, where the product for any number of tokens is a fifth slower
std::int64_t prepared_tokens(std::int64_t m, bool transposed, DType output) {
  if (transposed && m >= 16 && m < 128) return m;
  if (output == DType::f32) return 0;
  return m % 64 == 0 ? m : m - m % 512;
}

// Some f32 products of few tokens are faster in tiles (exact/chain_products.hpp) than with oneDNN 2.6.3. The limits below
// were measured on Zen 5 with AVX-512 and on Zen 3 with AVX2 (experiments/findings/experts.md).
//
//   dw += xᵀ·dy    up to 96 tokens, where reading and writing dw takes most of the time. Tiles access dw in long runs.
//   y = x·w        32 to 383 tokens, without AVX-512, if the rows of w are multiples of 2 KiB apart. Such rows share few
//                  sets of the L1 cache. oneDNN copies w only for more tokens (the limit is 256 to 384, depending on the
//                  shape), and takes up to twice as long without the copy.
bool outer_is_faster_in_tiles(std::int64_t tokens) { return tokens <= 96; }
bool product_is_faster_in_tiles(std::int64_t tokens, std::int64_t n, bool transposed) {
  return tile::lanes < 16 && !transposed && n % 512 == 0 && tokens >= 32 && tokens < 384;
}

std::int64_t columns(const Tensor& matrix) {
  require(!matrix.shape().empty(), "a product needs a matrix, not a scalar");
  return elements_of({matrix.shape().begin() + 1, matrix.shape().end()});
}

template <class T>
T* data(const Tensor& tensor) {
  return tensor.values<T>().data();
}

// Calls f(Type<T>{}) for the types that are summed in f32.
template <class F>
void with_tile_type(DType dtype, F f) {
  visit_floating(dtype, [&]<class T>(Type<T> type) {
    if constexpr (!std::is_same_v<T, double>) f(type);
  });
}

template <class T, class Y>
void product_in_tiles(const ProductShape& shape, const Tensor& x, const Tensor& w, bool transposed, const Tensor* bias,
                      const Tensor& y, int threads) {
  const auto [m, n, k, nothing] = shape;
  const exact::SideOf<T> a{data<T>(x), k, 1}, b{data<T>(w), transposed ? k : 1, transposed ? 1 : n};
  const exact::ThreadCut cut(m, n, threads);
  parallel_for(threads, cut.count(), [&](std::int64_t first, std::int64_t last) {
    exact::chain_product(a, b, k, bias ? data<T>(*bias) : nullptr, cut.part(first, last), data<Y>(y), n);
  });
}

template <class T>
void add_outer_in_tiles(const ProductShape& shape, const Tensor& x, const Tensor& dy, const Tensor& dw, int threads) {
  const auto [m, n, k, nothing] = shape;
  const exact::SideOf<T> a{data<T>(x), 1, k}, b{data<T>(dy), 1, n};
  const exact::ThreadCut cut(k, n, threads);
  parallel_for(threads, cut.count(), [&](std::int64_t first, std::int64_t last) {
    exact::add_chain_product(a, b, m, cut.part(first, last), data<float>(dw), n);
  });
}

double bytes_in(std::initializer_list<const Tensor*> tensors) {
  std::int64_t bytes = 0;
  for (const Tensor* tensor : tensors) bytes += tensor->bytes();
  return static_cast<double>(bytes);
}

// The work of a product [m, k] · [k, n].
KernelWork work_of(const ProductShape& shape, double bytes, bool gradient) {
  return {.work = Work::product,
          .amount = 2.0 * static_cast<double>(shape.m * shape.n) * static_cast<double>(shape.k),
          .bytes = bytes,
          .m = shape.m,
          .n = shape.n,
          .k = shape.k,
          .gradient = gradient};
}

}  // namespace

std::string product_library() { return "oneDNN " + onednn::version(); }

ProductShape product_shape(const Tensor& x, const Tensor& w, bool transposed, const Tensor* bias, const Tensor& y) {
  const std::int64_t m = x.dim(0), k = columns(x), n = columns(y);
  require(w.shape() == (transposed ? Shape{n, k} : Shape{k, n}),
          "the product [{}, {}] = [{}, {}]·w cannot take w of shape {}{}", m, n, m, k, to_string(w.shape()),
          transposed ? ", transposed" : "");
  require(y.dim(0) == m, "a product of {} rows cannot have a result of shape {}", m, to_string(y.shape()));
  require(k > 0, "a product needs at least one input: {}·{}", to_string(x.shape()), to_string(w.shape()));
  require(is_floating(x.dtype()) && w.dtype() == x.dtype(), "a product of {} by {} is not supported", name_of(x.dtype()),
          name_of(w.dtype()));
  require(y.dtype() == x.dtype() || (y.dtype() == DType::f32 && size_of(x.dtype()) == 2),
          "a product of {} cannot be stored as {}", name_of(x.dtype()), name_of(y.dtype()));
  require(!bias || (bias->shape() == Shape{n} && bias->dtype() == x.dtype()),
          "a bias for {} columns of {} cannot have the shape {} and the type {}", n, name_of(x.dtype()),
          bias ? to_string(bias->shape()) : "", name_of(bias ? bias->dtype() : x.dtype()));
  return {m, n, k, x.phantom() || w.phantom() || y.phantom() || (bias && bias->phantom()) || m == 0 || n == 0};
}

ProductShape outer_shape(const Tensor& x, const Tensor& dy, const Tensor& dw) {
  const std::int64_t m = x.dim(0), k = columns(x), n = columns(dy);
  require(dy.dim(0) == m && dw.shape() == Shape{k, n}, "the product xᵀ·dy of {} and {} cannot have the shape {}",
          to_string(x.shape()), to_string(dy.shape()), to_string(dw.shape()));
  require(is_floating(x.dtype()) && dy.dtype() == x.dtype(), "a product of {} by {} is not supported", name_of(x.dtype()),
          name_of(dy.dtype()));
  require(dw.dtype() == (x.dtype() == DType::f64 ? DType::f64 : DType::f32), "products of {} cannot be summed in {}",
          name_of(x.dtype()), name_of(dw.dtype()));
  return {m, n, k, x.phantom() || dy.phantom() || dw.phantom() || m == 0 || k == 0 || n == 0};
}

void Products::product(const Tensor& x, const Tensor& w, bool transposed, const Tensor* bias, const Tensor& y,
                       const Queue& queue) {
  const ProductShape shape = product_shape(x, w, transposed, bias, y);
  const auto [m, n, k, nothing] = shape;
  const Kernel kernel(queue, transposed ? "product, transposed" : "product", work_of(shape, bytes_in({&x, &w, &y}), false),
                      nothing);
  if (kernel.skips()) return;
  mark_accesses({&x, &w, bias}, {&y});
  if (x.dtype() == DType::f64) {
    parallel_for(queue.threads, m, [&](std::int64_t first, std::int64_t last) {
      reference::product(data<double>(x) + first * k, data<double>(w), transposed, bias ? data<double>(*bias) : nullptr,
                         data<double>(y) + first * n, last - first, k, n);
    });
  } else if (matmuls_.supports(x.dtype()) && !(x.dtype() == DType::f32 && product_is_faster_in_tiles(m, n, transposed))) {
    const std::int64_t prepared = prepared_tokens(m, transposed, y.dtype());
    const auto run = [&](std::int64_t first, std::int64_t rows, bool any_tokens) {
      if (rows == 0) return;
      matmuls_.run({.m = rows,
                    .n = n,
                    .k = k,
                    .w_transposed = transposed,
                    .input = x.dtype(),
                    .output = y.dtype(),
                    .bias = bias != nullptr,
                    .any_tokens = any_tokens,
                    .threads = queue.threads},
                   x.narrow(first, rows).slice().data, w.slice().data, bias ? bias->slice().data : nullptr,
                   y.narrow(first, rows).slice().data);
    };
    run(0, prepared, false);
    run(prepared, m - prepared, true);
  } else {
    with_tile_type(x.dtype(), [&]<class T>(Type<T>) {
      const auto run = y.dtype() == DType::f32 ? product_in_tiles<T, float> : product_in_tiles<T, T>;
      run(shape, x, w, transposed, bias, y, queue.threads);
    });
  }
}

void Products::add_outer(const Tensor& x, const Tensor& dy, const Tensor& dw, const Queue& queue) {
  const ProductShape shape = outer_shape(x, dy, dw);
  const auto [m, n, k, nothing] = shape;
  const Kernel kernel(queue, "gradient of weights", work_of({k, n, m, true}, bytes_in({&x, &dy, &dw, &dw}), true), nothing);
  if (kernel.skips()) return;
  mark_accesses({&x, &dy}, {&dw});
  if (x.dtype() == DType::f64) {
    reference::add_outer(data<double>(x), data<double>(dy), data<double>(dw), m, k, n);
  } else if (matmuls_.supports(x.dtype()) && !(x.dtype() == DType::f32 && outer_is_faster_in_tiles(m))) {
    matmuls_.run({.m = k,
                  .n = n,
                  .k = m,
                  .x_transposed = true,
                  .input = x.dtype(),
                  .accumulate = true,
                  .any_tokens = true,
                  .threads = queue.threads},
                 x.slice().data, dy.slice().data, nullptr, dw.slice().data);
  } else {
    with_tile_type(x.dtype(), [&]<class T>(Type<T>) { add_outer_in_tiles<T>(shape, x, dy, dw, queue.threads); });
  }
}

}  // namespace chorale
