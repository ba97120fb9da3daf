// Adds each row of dy to the table row that the row's id selects, on a device and without atomics. The rows of dy are sorted
// by id. Then one thread block adds all rows with the same id, in the order of dy, as the host does.
//
//   ids     7 3 7 5 3        key = (row of the table, row of dy); the row of dy is the subscript
//   sorted  3₁ 3₄ 5₃ 7₀ 7₂   one block per key; the blocks of 3₁, 5₃ and 7₀ add rows, all other blocks exit immediately
//
// The kernel is memory-bound: dy is read once, and the selected rows of the table are read and written once. For 16384 rows
// of 768 elements in bf16 with distinct ids, the traffic is 125 MB, which takes 26 µs at 4.8 TB/s. The sort takes a few
// additional launches. Rows with the same id are added one after another, at about 0.2 µs each, so a frequent id takes
// longer.
#include <bit>

#include "src/math/cuda/kernels.cuh"
#include "src/math/cuda/map.cuh"
#include "src/math/cuda/numbers.cuh"
#include "src/math/cuda/sort.cuh"

namespace chorale::cuda {
namespace {

constexpr int threads = 128;

// The keys of ids outside the table sort after the keys of all table rows.
struct KeyOfRow {
  std::int64_t first, length;
  __device__ std::uint64_t operator()(std::int64_t row, std::int32_t id) const {
    const std::int64_t place = id - first;
    const std::int64_t sorted_as = place >= 0 && place < length ? place : length;
    return static_cast<std::uint64_t>(sorted_as) << 32 | static_cast<std::uint64_t>(row);
  }
};

__device__ std::int64_t place_of(std::uint64_t key) { return static_cast<std::int64_t>(key >> 32); }
__device__ std::int64_t row_of(std::uint64_t key) { return static_cast<std::int64_t>(key & 0xffffffffu); }

template <class T, int width>
__global__ void add_sorted_rows(const std::uint64_t* sorted, std::int64_t rows, const T* dy, std::int64_t columns,
                                Statistic<T>* table, std::int64_t length) {
  const std::int64_t tiles = (columns + threads * width - 1) / (threads * width), here = blockIdx.x / tiles;
  const std::int64_t column = (blockIdx.x % tiles * threads + threadIdx.x) * width, place = place_of(sorted[here]);
  const bool begins = here == 0 || place_of(sorted[here - 1]) < place;
  if (!begins || place == length || column >= columns) return;
  auto sums = load<width>(table + place * columns + column);
  const std::int64_t end = first_at_least(sorted, here, rows, static_cast<std::uint64_t>(place + 1) << 32);
#pragma unroll 4
  for (std::int64_t i = here; i < end; ++i) {
    const auto slopes = load<width>(dy + row_of(sorted[i]) * columns + column);
    for (int e = 0; e < width; ++e) sums.values[e] += widened(slopes.values[e]);
  }
  store<width>(table + place * columns + column, sums);
}

}  // namespace

void add_rows(const Tensor& ids, std::int64_t first, const Tensor& dy, const Tensor& table, const Queue& queue) {
  const std::int64_t rows = dy.dim(0), length = table.dim(0), columns = table.dim(1);
  if (dy.count() == 0) return;
  const Scratch<std::uint64_t> keys(rows, queue), sorted(rows, queue);
  map(queue, KeyOfRow{first, length}, rows, keys.get(), static_cast<const std::int32_t*>(data<std::int32_t>(ids)));
  sort_upper(keys.get(), rows, std::bit_width(static_cast<std::uint64_t>(length)), sorted.get(), queue);
  visit_floating(dy.dtype(), [&]<class T>(Type<T>) {
    const T* slopes = data<T>(dy);
    auto* sums = data<Statistic<T>>(table);
    with_packs(Type<T>{}, aligned(slopes, sums) && columns * sizeof(T) % 16 == 0, [&](auto width) {
      launch(add_sorted_rows<T, width()>, {rows * quotient_up(columns, threads * width()), threads}, queue,
             static_cast<const std::uint64_t*>(sorted.get()), rows, slopes, columns, sums, length);
    });
  });
}

}  // namespace chorale::cuda
