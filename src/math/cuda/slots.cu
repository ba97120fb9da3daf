// Copies rows to and from the experts on a device (src/math/slots.hpp). put_slots has no kernel in this file, because the
// host's function calls gather_rows.
//
//   take_rows          a block per token reads x once and writes the token's k rows
//   add_slots          a thread per pack of columns adds the k slots in slot order
//   weight_gradients   a warp per choice; its f32 sums have the same order as on the host (row_sums.cuh)
//
// The kernels are memory-bound. take_rows() and add_slots() read or write k + 1 rows per token. weight_gradients() reads k
// rows from memory, and dy from the cache. For 16384 tokens of width 4096 with k = 8 in bf16, the traffic is 1.2 GB, which
// takes 0.25 ms at 4.8 TB/s (computed, not measured).
#include "src/math/slots.hpp"

#include "src/math/cuda/kernels.cuh"
#include "src/math/cuda/launch.cuh"
#include "src/math/cuda/row_sums.cuh"

namespace chorale::cuda {
namespace {

constexpr int threads = 128;

template <bool weighted, class T, int width>
__global__ void take(const T* x, const Statistic<T>* weights, const std::int32_t* places, std::int64_t k,
                     std::int64_t columns, T* rows) {
  const std::int64_t first = blockIdx.x * k;  // index of the token's first choice
  for (std::int64_t j = threadIdx.x * width; j < columns; j += threads * width) {
    const auto from = load<width>(x + blockIdx.x * columns + j);
    for (std::int64_t choice = first; choice < first + k; ++choice) {
      const std::int64_t row = places[choice];
      if (row < 0) continue;
      auto to = from;
      if constexpr (weighted)
        for (int i = 0; i < width; ++i) to.values[i] = rounded<T>(weights[choice] * widened(from.values[i]));
      store<width>(rows + row * columns + j, to);
    }
  }
}

template <class T, int width>
__global__ void add_up(const T* slots, const Statistic<T>* weights, const T* added, std::int64_t k, std::int64_t columns,
                       std::int64_t count, T* y) {
  const std::int64_t here = (static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x) * width;
  if (here >= count) return;
  const std::int64_t token = here / columns, column = here % columns;
  Statistic<T> sums[width] = {};
  for (std::int64_t choice = token * k; choice < (token + 1) * k; ++choice) {
    const auto slot = load<width>(slots + choice * columns + column);
    const Statistic<T> weight = weights ? weights[choice] : 1;
    for (int i = 0; i < width; ++i) sums[i] = fused(weight, widened(slot.values[i]), sums[i]);
  }
  Pack<T, width> around{}, result;
  if (added) around = load<width>(added + here);
  for (int i = 0; i < width; ++i) result.values[i] = rounded<T>(added ? sums[i] + widened(around.values[i]) : sums[i]);
  store<width>(y + here, result);
}

template <class T, int width>
__global__ void choice_gradients(const T* dy, const T* slots, std::int64_t k, std::int64_t columns, std::int64_t choices,
                                 Statistic<T>* dweights) {
  const std::int64_t choice = static_cast<std::int64_t>(blockIdx.x) * (threads / warp) + threadIdx.x / warp;
  if (choice >= choices) return;
  const auto product = [](Statistic<T> a, Statistic<T> b) { return a * b; };
  const Statistic<T> sum = sum_of_row<width>(columns, product, dy + choice / k * columns, slots + choice * columns);
  if (threadIdx.x % warp == 0) dweights[choice] = sum;
}

// Calls f(width). `width` is the number of elements in a pack (16-byte vector) if rows of `columns` elements can be read in
// packs, and otherwise 1.
template <class T, class F, class... Pointers>
void with_row_packs(std::int64_t columns, F&& f, const Pointers*... pointers) {
  with_packs(Type<T>{}, aligned(pointers...) && columns * sizeof(T) % 16 == 0, f);
}

}  // namespace

void take_rows(const Tensor& x, const Tensor* weights, const Tensor& places, const Tensor& rows, const Queue& queue) {
  const auto run = [&]<bool weighted, class T>(std::bool_constant<weighted>, Type<T>, const Statistic<T>* weight) {
    const std::int64_t columns = x.dim(1) * size_of(x.dtype()) / static_cast<std::int64_t>(sizeof(T));
    const T* in = data<T>(x);
    T* out = data<T>(rows);
    const auto start = [&](auto width) {
      launch(take<weighted, T, width()>, {x.dim(0), threads}, queue, in, weight, data<std::int32_t>(places), places.dim(1),
             columns, out);
    };
    with_row_packs<T>(columns, start, in, out);
  };
  if (!weights)
    return run(std::false_type{}, Type<std::uint16_t>{}, nullptr);  // copies rows as bytes, regardless of their
                                                                    // type
  visit_floating(x.dtype(), [&]<class T>(Type<T> type) { run(std::true_type{}, type, data<Statistic<T>>(*weights)); });
}

void add_slots(const Tensor& slots, const Tensor* weights, const Tensor* added, const Tensor& y, const Queue& queue) {
  const std::int64_t columns = y.dim(1), k = slots.dim(1) / columns;
  visit_floating(y.dtype(), [&]<class T>(Type<T>) {
    const T *in = data<T>(slots), *around = data<T>(added);
    T* out = data<T>(y);
    const auto start = [&](auto width) {
      launch(add_up<T, width()>, {quotient_up(y.count(), threads * width()), threads}, queue, in,
             data<Statistic<T>>(weights), around, k, columns, y.count(), out);
    };
    with_row_packs<T>(columns, start, in, around, out);
  });
}

void weight_gradients(const Tensor& dy, const Tensor& slots, const Tensor& dweights, const Queue& queue) {
  visit_floating(dy.dtype(), [&]<class T>(Type<T>) {
    const T *above = data<T>(dy), *in = data<T>(slots);
    const auto start = [&](auto width) {
      launch(choice_gradients<T, width()>, {quotient_up(dweights.count(), threads / warp), threads}, queue, above, in,
             dweights.dim(1), dy.dim(1), dweights.count(), data<Statistic<T>>(dweights));
    };
    with_row_packs<T>(dy.dim(1), start, above, in);
  });
}

}  // namespace chorale::cuda
