#include "src/math/products.hpp"

#include <algorithm>

#include "src/base/parallel.hpp"
#include "src/math/exact/chains.hpp"
#include "src/math/onednn.hpp"
#include "src/math/reference/product.hpp"

namespace chorale {
namespace {

// How many of m tokens go through a product that is prepared for their number (matmul.hpp). The rest go through the product
// for all numbers, so that experts, whose numbers of rows change from call to call, cause few preparations. Prepared are:
//
//   16-bit results       multiples of 64 tokens, because micro-batches recur; of other numbers, the largest multiple of 512
//   a transposed w       from 16 to 127 tokens, where the product for all numbers is a fifth slower
std::int64_t prepared_tokens(std::int64_t m, bool transposed, DType output) {
  if (transposed && m >= 16 && m < 128) return m;
  if (output == DType::f32) return 0;
  return m % 64 == 0 ? m : m - m % 512;
}

// dw += xᵀ·dy over so few tokens that reading and writing dw takes most of the time, if it is not done in long runs.
constexpr std::int64_t few_tokens = 96;

void add_outer_of_few(const Tensor& x, const Tensor& dy, const Tensor& dw, const Queue& queue) {
  using namespace exact;
  const std::int64_t m = x.dim(0), k = dw.dim(0), n = elements_of(dw.shape()) / k;
  const Side a{x.values<float>().data(), 1, k}, b{dy.values<float>().data(), 1, n};
  float* const out = dw.values<float>().data();
  parallel_for(queue.threads, (k + tile_rows - 1) / tile_rows, [&](std::int64_t first, std::int64_t last) {
    const Part part{first * tile_rows, std::min(last * tile_rows, k), 0, n};
    each_tile(a, b, part, std::span(&m, 1), [&](const Place& at, const float* left, const float* right) {
      Tile tile = {};
      float* const corner = out + at.row * n + at.column;
      for (std::int64_t i = 0; i < at.rows; ++i) std::copy_n(corner + i * n, at.columns, tile[i]);
      prefetch_next(corner, at.rows, n);
      extend(tile, left, right, m);
      for (std::int64_t i = 0; i < at.rows; ++i) std::copy_n(tile[i], at.columns, corner + i * n);
    });
  });
}

constexpr std::int64_t panel = 256;  // rows widened at a time, so few that they are in the cache when they are multiplied

std::int64_t columns(const Tensor& matrix) {
  require(!matrix.shape().empty(), "a product needs a matrix, not a scalar");
  return elements_of({matrix.shape().begin() + 1, matrix.shape().end()});
}

template <class T>
const float* widen(const T* values, std::int64_t count, std::vector<float>& wide, int threads) {
  if (std::ssize(wide) < count) wide.resize(static_cast<std::size_t>(count));
  float* out = wide.data();
  parallel_for(threads, count, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) out[i] = static_cast<float>(values[i]);
  });
  return out;
}

template <class T>
T* data(const Tensor& tensor) {
  return tensor.values<T>().data();
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
  const auto [m, n, k, nothing] = product_shape(x, w, transposed, bias, y);
  if (nothing) return queue.note(Work::product, 2.0 * static_cast<double>(m * n) * static_cast<double>(k));
  if (x.dtype() == DType::f64) {
    parallel_for(queue.threads, m, [&](std::int64_t first, std::int64_t last) {
      reference::product(data<double>(x) + first * k, data<double>(w), transposed, bias ? data<double>(*bias) : nullptr,
                         data<double>(y) + first * n, last - first, k, n);
    });
  } else if (matmuls_.supports(x.dtype())) {
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
    run(0, prepared, false), run(prepared, m - prepared, true);
  } else if (x.dtype() == DType::bf16) {
    product_in_panels<bf16>(x, w, transposed, bias, y, queue);
  } else {
    product_in_panels<f16>(x, w, transposed, bias, y, queue);
  }
}

template <class T>
void Products::product_in_panels(const Tensor& x, const Tensor& w, bool transposed, const Tensor* bias, const Tensor& y,
                                 const Queue& queue) {
  const std::int64_t m = x.dim(0), k = columns(x), n = columns(y);
  const bool narrows = y.dtype() != DType::f32;
  const float* wide_w = widen(data<T>(w), w.count(), wide_w_, queue.threads);
  const float* wide_bias = bias ? widen(data<T>(*bias), n, wide_bias_, 1) : nullptr;
  if (narrows && std::ssize(wide_y_) < panel * n) wide_y_.resize(static_cast<std::size_t>(panel * n));
  for (std::int64_t first = 0; first < m; first += panel) {
    const std::int64_t rows = std::min(panel, m - first);
    const float* wide_x = widen(data<T>(x) + first * k, rows * k, wide_x_, queue.threads);
    float* wide_y = narrows ? wide_y_.data() : data<float>(y) + first * n;
    matmuls_.run({.m = rows,
                  .n = n,
                  .k = k,
                  .w_transposed = transposed,
                  .bias = bias != nullptr,
                  .any_tokens = true,
                  .threads = queue.threads},
                 wide_x, wide_w, wide_bias, wide_y);
    if (!narrows) continue;
    T* out = data<T>(y) + first * n;
    parallel_for(queue.threads, rows * n, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = from; i < to; ++i) out[i] = static_cast<T>(wide_y[i]);
    });
  }
}

void Products::add_outer(const Tensor& x, const Tensor& dy, const Tensor& dw, const Queue& queue) {
  const auto [m, n, k, nothing] = outer_shape(x, dy, dw);
  if (nothing) return queue.note(Work::product, 2.0 * static_cast<double>(m * n) * static_cast<double>(k));
  if (x.dtype() == DType::f64) {
    reference::add_outer(data<double>(x), data<double>(dy), data<double>(dw), m, k, n);
  } else if (x.dtype() == DType::f32 && m <= few_tokens) {
    add_outer_of_few(x, dy, dw, queue);
  } else if (matmuls_.supports(x.dtype())) {
    matmuls_.run({.m = k,
                  .n = n,
                  .k = m,
                  .x_transposed = true,
                  .input = x.dtype(),
                  .accumulate = true,
                  .any_tokens = true,
                  .threads = queue.threads},
                 x.slice().data, dy.slice().data, nullptr, dw.slice().data);
  } else if (x.dtype() == DType::bf16) {
    add_outer_in_panels<bf16>(x, dy, dw, queue);
  } else {
    add_outer_in_panels<f16>(x, dy, dw, queue);
  }
}

template <class T>
void Products::add_outer_in_panels(const Tensor& x, const Tensor& dy, const Tensor& dw, const Queue& queue) {
  const std::int64_t m = x.dim(0), k = columns(x), n = columns(dy);
  for (std::int64_t first = 0; first < m; first += panel) {
    const std::int64_t rows = std::min(panel, m - first);
    const float* wide_x = widen(data<T>(x) + first * k, rows * k, wide_x_, queue.threads);
    const float* wide_dy = widen(data<T>(dy) + first * n, rows * n, wide_y_, queue.threads);
    matmuls_.run(
        {.m = k, .n = n, .k = rows, .x_transposed = true, .accumulate = true, .any_tokens = true, .threads = queue.threads},
        wide_x, wide_dy, nullptr, data<float>(dw));
  }
}

}  // namespace chorale
