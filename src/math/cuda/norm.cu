// LayerNorm and RMSNorm on a device, one warp per row. A row is read once from global memory and kept in shared memory,
// because the variance needs the mean, and `y` needs the mean and the variance. Rows are read in 16-byte vectors (packs) if
// the rows are aligned and their length is a multiple of 16 bytes.
//
//   row   ──▶ shared ──▶ Σ, each lane every 32nd element ──▶ mean ──▶ Σ of squares ──▶ rstd ──▶ y
//
// f32 sums have the same order as on the host (row_sums.cuh). f64 sums have a different order, because the host sums f64
// sequentially (src/math/reference).
//
// The kernels are memory-bound: the forward pass reads x and writes y; the backward pass reads dy, x and the added gradient
// and writes dx. At 4.8 TB/s, [16384, 4096] in bf16 takes at least 56 µs forward and 112 µs backward. For [16384, 768] on an
// H200, the kernels reach 65 % (forward) and 74 % (backward) of the bandwidth of a copy.
#include <algorithm>

#include "src/math/cuda/kernels.cuh"
#include "src/math/cuda/row_sums.cuh"

namespace chorale::cuda {
namespace {

// The largest number of warps per block; each warp processes one row. A block has fewer warps if shared memory cannot hold
// four rows.
constexpr int most_warps = 4;

// A row of a matrix, and this thread's lane in the warp that processes the row.
struct WarpRow {
  std::int64_t row, start, columns;
  int lane = static_cast<int>(threadIdx.x) % warp;

  __device__ explicit WarpRow(std::int64_t columns)
      : row(static_cast<std::int64_t>(blockIdx.x) * (blockDim.x / warp) + threadIdx.x / warp),
        start(row * columns),
        columns(columns) {}

  // Returns the first of this warp's `count` rows in shared memory.
  template <class T>
  __device__ T* kept(int count) const {
    return shared_memory<T>() + threadIdx.x / warp * count * columns;
  }
  template <int width, class F>
  __device__ void each_pack(F f) const {
    each_pack_of_lane<width>(columns, f);
  }
  // Starts to copy this warp's row to shared memory. wait_for_copies() waits for the copy. Packs of 16 bytes do not pass
  // through registers, so all loads of the row are in flight at the same time. Single elements are copied synchronously.
  template <int width, class T>
  __device__ void fetch(const T* matrix, T* to) const {
    each_pack<width>([&](std::int64_t j) {
      if constexpr (width * sizeof(T) == 16)
        copy_pack_later(to + j, matrix + start + j, true);
      else
        to[j] = matrix[start + j];
    });
  }
  template <int width, class Term, class... Rows>
  __device__ auto sum(Term term, const Rows*... rows) const {
    return sum_of_row<width>(columns, term, rows...);
  }
};

template <NormKind kind, class T, int width>
__global__ void norm_rows(const T* x, const T* gain, const T* shift, Statistic<T> epsilon, T* y, Statistic<T>* stats,
                          std::int64_t rows, std::int64_t columns) {
  using W = Statistic<T>;
  const WarpRow at(columns);
  if (at.row >= rows) return;
  T* row = at.kept<T>(1);
  at.fetch<width>(x, row);
  wait_for_copies();
  __syncwarp();
  W mean = 0;
  if constexpr (kind == NormKind::layer) mean = at.sum<width>([](W value) { return value; }, row) / W(columns);
  const auto square = [&](W value) { return (value - mean) * (value - mean); };
  const W squares = at.sum<width>(square, row);
  const W rstd = 1 / root(squares / W(columns) + epsilon);
  at.each_pack<width>([&](std::int64_t j) {
    const auto values = load<width>(row + j), gains = load<width>(gain + j);
    Pack<T, width> shifts{}, result;
    if (shift) shifts = load<width>(shift + j);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const W scaled = (widened(values.values[i]) - mean) * rstd * widened(gains.values[i]);
      result.values[i] = rounded<T>(shift ? scaled + widened(shifts.values[i]) : scaled);
    }
    store<width>(y + at.start + j, result);
  });
  if (at.lane == 0) {
    stats[2 * at.row] = mean;
    stats[2 * at.row + 1] = rstd;
  }
}

template <NormKind kind, class T, int width>
__global__ void norm_gradient_rows(const T* dy, const T* x, const T* gain, const Statistic<T>* stats, const T* added, T* dx,
                                   std::int64_t rows, std::int64_t columns) {
  using W = Statistic<T>;
  const WarpRow at(columns);
  if (at.row >= rows) return;
  T *above = at.kept<T>(2), *row = above + columns;
  at.fetch<width>(dy, above);
  at.fetch<width>(x, row);
  wait_for_copies();
  __syncwarp();
  const W mean = stats[2 * at.row], rstd = stats[2 * at.row + 1];
  const auto slope = [](W dy, W gain) { return dy * gain; };
  const auto normal = [&](W x) { return (x - mean) * rstd; };
  const auto term = [&](W dy, W gain, W x) { return slope(dy, gain) * normal(x); };
  const W along = at.sum<width>(term, above, gain, row) / W(columns);
  W level = 0;
  if constexpr (kind == NormKind::layer) level = at.sum<width>(slope, above, gain) / W(columns);
  at.each_pack<width>([&](std::int64_t j) {
    const auto slopes = load<width>(above + j), gains = load<width>(gain + j), values = load<width>(row + j);
    Pack<T, width> around{}, result;
    if (added) around = load<width>(added + at.start + j);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const W pulled = slope(widened(slopes.values[i]), widened(gains.values[i])) - level;
      const W gradient = rstd * (pulled - normal(widened(values.values[i])) * along);
      result.values[i] = rounded<T>(added ? widened(around.values[i]) + gradient : gradient);
    }
    store<width>(dx + at.start + j, result);
  });
}

// Returns a grid with as many rows per block as fit in its shared memory, but at most most_warps.
Grid grid_of(const Tensor& x, std::int64_t kept) {
  constexpr std::int64_t most_shared_bytes = 227 << 10;
  const std::int64_t columns = x.dim(1), bytes = kept * columns * size_of(x.dtype());
  require(bytes <= most_shared_bytes, "a norm of rows of {} {} elements needs more than a block's {} bytes of shared memory",
          columns, name_of(x.dtype()), most_shared_bytes);
  const std::int64_t warps = std::clamp<std::int64_t>(most_shared_bytes / std::max<std::int64_t>(bytes, 1), 1, most_warps);
  return {quotient_up(x.dim(0), warps), static_cast<int>(warps) * warp, warps * bytes};
}

// Calls f(kind, width), where `kind` and `width` are compile-time constants.
template <class T, class F>
void with_form(NormKind kind, bool wide, F&& f) {
  with_packs(Type<T>{}, wide, [&](auto width) {
    if (kind == NormKind::layer) return f(std::integral_constant<NormKind, NormKind::layer>{}, width);
    f(std::integral_constant<NormKind, NormKind::rms>{}, width);
  });
}

}  // namespace

void norm_forward(NormKind kind, const Tensor& x, const Tensor& gain, const Tensor* shift, double epsilon, const Tensor& y,
                  const Tensor& stats, const Queue& queue) {
  visit_floating(x.dtype(), [&]<class T>(Type<T>) {
    const T *in = data<T>(x), *g = data<T>(gain), *s = data<T>(shift);
    T* out = data<T>(y);
    auto* kept = data<Statistic<T>>(stats);
    const bool wide = aligned(in, g, s, out) && x.dim(1) * sizeof(T) % 16 == 0;
    with_form<T>(kind, wide, [&](auto kind, auto width) {
      launch(norm_rows<kind(), T, width()>, grid_of(x, 1), queue, in, g, s, epsilon, out, kept, x.dim(0), x.dim(1));
    });
  });
}

void norm_backward(NormKind kind, const Tensor& dy, const Tensor& x, const Tensor& gain, const Tensor& stats,
                   const Tensor* added, const Tensor& dx, const Queue& queue) {
  visit_floating(x.dtype(), [&]<class T>(Type<T>) {
    const T *above = data<T>(dy), *in = data<T>(x), *g = data<T>(gain), *around = data<T>(added);
    const auto* kept = data<Statistic<T>>(stats);
    T* out = data<T>(dx);
    const bool wide = aligned(above, in, g, around, out) && x.dim(1) * sizeof(T) % 16 == 0;
    with_form<T>(kind, wide, [&](auto kind, auto width) {
      launch(norm_gradient_rows<kind(), T, width()>, grid_of(x, 2), queue, above, in, g, kept, around, out, x.dim(0),
             x.dim(1));
    });
  });
}

}  // namespace chorale::cuda
