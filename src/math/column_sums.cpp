#include "src/math/column_sums.hpp"

#include <algorithm>

#include "src/base/parallel.hpp"
#include "src/math/device_kernels.hpp"
#include "src/math/kernel.hpp"
#include "src/math/reference/sums.hpp"

namespace chorale {
namespace {

// Number of columns per block. The sums of a block (two per column, 16 KiB) stay in the L1 cache while all rows are read. In
// most models, a row fits into one or two blocks, so rows are read in long contiguous runs, which processors prefetch. With
// shorter runs, f32 sums took twice as long.
constexpr std::int64_t block = 2048;

template <class Body>
void each_block(const Queue& queue, std::int64_t columns, Body&& body) {
  parallel_for(queue.threads, columns, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t from = first; from < last; from += block) body(from, std::min(block, last - from));
  });
}

std::int64_t columns_of(const Tensor& dy) { return elements_of({dy.shape().begin() + 1, dy.shape().end()}); }

void require_sum(const Tensor& dy, const Tensor& sum, std::int64_t count) {
  require(sum.count() == count, "a gradient of shape {} cannot hold the column sums of a tensor of shape {}",
          to_string(sum.shape()), to_string(dy.shape()));
  require(is_floating(dy.dtype()) && sum.dtype() == (dy.dtype() == DType::f64 ? DType::f64 : DType::f32),
          "the sums of {} gradients cannot be stored as {}", name_of(dy.dtype()), name_of(sum.dtype()));
}

}  // namespace

void add_columns(const Tensor& dy, const Tensor& db, const Queue& queue) {
  const std::int64_t rows = dy.dim(0), n = columns_of(dy);
  require_sum(dy, db, n);
  const Kernel kernel(queue, "column sums", dy, db);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->add_columns(dy, db, queue);
  visit_floating(dy.dtype(), [&]<class T>(Type<T>) {
    const T* in = dy.values<T>().data();
    if constexpr (sizeof(T) == 8) {
      reference::add_columns(in, db.values<T>().data(), rows, n);
    } else {
      float* out = db.values<float>().data();
      each_block(queue, n, [&](std::int64_t from, std::int64_t width) {
        float sums[block] = {};
        for (std::int64_t row = 0; row < rows; ++row) {
          const T* line = in + row * n + from;
          for (std::int64_t j = 0; j < width; ++j) sums[j] += static_cast<float>(line[j]);
        }
        for (std::int64_t j = 0; j < width; ++j) out[from + j] += sums[j];
      });
    }
  });
}

void add_norm_gradients(const Tensor& dy, const Tensor& x, const Tensor& stats, const Tensor& dgain, const Tensor* dshift,
                        const Queue& queue) {
  const std::int64_t rows = dy.dim(0), n = columns_of(dy);
  require_sum(dy, dgain, n);
  if (dshift) require_sum(dy, *dshift, n);
  require(x.shape() == dy.shape() && x.dtype() == dy.dtype(),
          "dy of a norm must have the shape and type of x, {} {}, but has {} {}", to_string(x.shape()), name_of(x.dtype()),
          to_string(dy.shape()), name_of(dy.dtype()));
  require(stats.shape() == Shape{rows, 2} && stats.dtype() == dgain.dtype(),
          "the statistics of {} rows cannot have the shape {} and the type {}", rows, to_string(stats.shape()),
          name_of(stats.dtype()));
  const Kernel kernel(queue, "gradients of norms", dy, x, stats, dgain, dshift);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->add_norm_gradients(dy, x, stats, dgain, dshift, queue);
  visit_floating(dy.dtype(), [&]<class T>(Type<T>) {
    const T *dys = dy.values<T>().data(), *xs = x.values<T>().data();
    if constexpr (sizeof(T) == 8) {
      reference::add_norm_gradients(dys, xs, stats.values<T>().data(), dgain.values<T>().data(),
                                    dshift ? dshift->values<T>().data() : nullptr, rows, n);
    } else {
      const float* of = stats.values<float>().data();
      float *gain = dgain.values<float>().data(), *shift = dshift ? dshift->values<float>().data() : nullptr;
      each_block(queue, n, [&](std::int64_t from, std::int64_t width) {
        float gains[block] = {}, shifts[block] = {};
        for (std::int64_t row = 0; row < rows; ++row) {
          const T *dy_line = dys + row * n + from, *x_line = xs + row * n + from;
          const float mean = of[2 * row], rstd = of[2 * row + 1];
          for (std::int64_t j = 0; j < width; ++j) {
            const float d = static_cast<float>(dy_line[j]);
            gains[j] = __builtin_fmaf(d, (static_cast<float>(x_line[j]) - mean) * rstd, gains[j]);
            shifts[j] += d;
          }
        }
        for (std::int64_t j = 0; j < width; ++j) gain[from + j] += gains[j];
        for (std::int64_t j = 0; shift && j < width; ++j) shift[from + j] += shifts[j];
      });
    }
  });
}

void add_rows(const Tensor& ids, std::int64_t first, const Tensor& dy, const Tensor& table, const Queue& queue) {
  const std::int64_t rows = dy.dim(0), n = columns_of(dy), length = table.dim(0);
  require_sum(dy, table, length * n);
  require(ids.count() == rows && ids.dtype() == DType::i32, "{} rows need as many ids of type i32, got {} of type {}", rows,
          ids.count(), name_of(ids.dtype()));
  const Kernel kernel(queue, "gradient of embedding", ids, dy, dy);
  if (kernel.skips() || table.phantom()) return;  // one row of the table is accessed for each row of dy
  if (queue.device) return queue.device->add_rows(ids, first, dy, table, queue);
  const std::int32_t* places = ids.values<std::int32_t>().data();
  visit_floating(dy.dtype(), [&]<class T>(Type<T>) {
    const T* in = dy.values<T>().data();
    if constexpr (sizeof(T) == 8) {
      reference::add_rows(places, first, in, table.values<T>().data(), length, rows, n);
    } else {
      float* out = table.values<float>().data();
      parallel_for(queue.threads, n, [&](std::int64_t from, std::int64_t to) {
        for (std::int64_t row = 0; row < rows; ++row) {
          const std::int64_t place = places[row] - first;
          if (place < 0 || place >= length) continue;
          for (std::int64_t j = from; j < to; ++j) out[place * n + j] += static_cast<float>(in[row * n + j]);
        }
      });
    }
  });
}

}  // namespace chorale
