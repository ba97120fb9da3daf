#include "src/math/embedding.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "src/math/device_kernels.hpp"
#include "src/math/kernel.hpp"
#include "src/math/rotation.hpp"

namespace chorale {
namespace {

// The rotations of all pairs of a head at a position. Each rotation is the product of two entries, one from each of two
// small tables (rotation.hpp). Rotations depend only on the position.
class Turns {
 public:
  Turns(const Rotary& rotary, std::int64_t positions, bool back) : half_(rotary.width / 2), back_(back) {
    const double log2_base = std::log2(rotary.base);
    std::vector<double> frequencies(static_cast<std::size_t>(half_));
    for (std::int64_t i = 0; i < half_; ++i) frequencies[static_cast<std::size_t>(i)] = math::frequency(i, half_, log2_base);
    const auto table = [&](std::int64_t count, std::int64_t stride) {
      std::vector<math::Turn> turns;
      turns.reserve(static_cast<std::size_t>(count * half_));
      for (std::int64_t k = 0; k < count; ++k)
        for (const double frequency : frequencies) turns.push_back(math::turn(static_cast<double>(k * stride) * frequency));
      return turns;
    };
    coarse_ = table((positions + math::fine_positions - 1) / math::fine_positions, math::fine_positions);
    fine_ = table(std::min(positions, math::fine_positions), 1);
  }

  template <class T>
  void of(std::int64_t position, T* cosines, T* sines) const {
    const math::Turn *coarse = &coarse_[static_cast<std::size_t>(position / math::fine_positions * half_)],
                     *fine = &fine_[static_cast<std::size_t>(position % math::fine_positions * half_)];
    for (std::int64_t i = 0; i < half_; ++i) {
      const math::Turn turn = coarse[i] * fine[i];
      cosines[i] = static_cast<T>(turn.cosine);
      sines[i] = static_cast<T>(back_ ? -turn.sine : turn.sine);
    }
  }

 private:
  std::int64_t half_;
  bool back_;
  std::vector<math::Turn> coarse_, fine_;
};

template <class T>
void rotate_row(T* x, const Rotary& rotary, const Statistic<T>* cosines, const Statistic<T>* sines) {
  const std::int64_t half = rotary.width / 2;
  for (std::int64_t unit = 0; unit < rotary.units; ++unit)
    for (std::int64_t head = 0; head < rotary.rotated; ++head) {
      T *low = x + (unit * rotary.heads + head) * rotary.width, *high = low + half;
#pragma GCC ivdep
      for (std::int64_t i = 0; i < half; ++i) {
        const auto a = static_cast<Statistic<T>>(low[i]), b = static_cast<Statistic<T>>(high[i]);
        low[i] = static_cast<T>(a * cosines[i] - b * sines[i]);
        high[i] = static_cast<T>(b * cosines[i] + a * sines[i]);
      }
    }
}

}  // namespace

// Copies rows as bytes, so one loop serves all types.
void gather_rows(const Tensor& ids, const Tensor& table, std::int64_t first, const Tensor& y, const Queue& queue) {
  require(ids.dtype() == DType::i32 && table.shape().size() == 2 && y.shape() == Shape{ids.count(), table.dim(1)} &&
              y.dtype() == table.dtype(),
          "y {} of {} cannot hold rows of the table {} of {} for {} ids of {}", to_string(y.shape()), name_of(y.dtype()),
          to_string(table.shape()), name_of(table.dtype()), ids.count(), name_of(ids.dtype()));
  const Kernel kernel(queue, "embedding", ids, y, y);
  if (kernel.skips() || table.phantom()) return;  // each row of y needs only one row of the table
  if (queue.device) return queue.device->gather_rows(ids, table, first, y, queue);
  const std::int64_t bytes = table.dim(1) * size_of(table.dtype()), length = table.dim(0);
  const std::int32_t* numbers = ids.values<std::int32_t>().data();
  const auto* from = static_cast<const std::byte*>(table.slice().data);
  auto* to = static_cast<std::byte*>(y.slice().data);
  parallel_for(queue.threads, ids.count(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t at = numbers[row] - first;
      if (at >= 0 && at < length)
        std::memcpy(to + row * bytes, from + at * bytes, static_cast<std::size_t>(bytes));
      else
        std::memset(to + row * bytes, 0, static_cast<std::size_t>(bytes));
    }
  });
}

void add_positions(const Tensor& table, const Tokens& tokens, const Tensor& y, const Queue& queue) {
  require(y.shape().size() == 2 && table.shape().size() == 2 && table.dim(1) == y.dim(1) && table.dtype() == y.dtype() &&
              (tokens.places ? tokens.end() : std::min(tokens.end(), tokens.first_token + y.dim(0))) <= table.dim(0),
          "positions {} to {} cannot be added to y {} of {} from the table {} of {}", tokens.first_token, tokens.end(),
          to_string(y.shape()), name_of(y.dtype()), to_string(table.shape()), name_of(table.dtype()));
  const Kernel kernel(queue, "positions", table, y);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->add_positions(table, tokens, y, queue);
  const std::int64_t width = y.dim(1);
  visit_floating(y.dtype(), [&]<class T>(Type<T>) {
    const T* places = table.values<T>().data();
    T* out = y.values<T>().data();
    parallel_for(queue.threads, y.dim(0), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first; row < last; ++row) {
        const T* place = places + tokens.position(row) * width;
        T* here = out + row * width;
#pragma GCC ivdep
        for (std::int64_t j = 0; j < width; ++j)
          here[j] = static_cast<T>(static_cast<Statistic<T>>(here[j]) + static_cast<Statistic<T>>(place[j]));
      }
    });
  });
}

void rotate(const Tensor& x, const Rotary& rotary, const Tokens& tokens, bool back, const Queue& queue) {
  require(rotary.width % 2 == 0 && rotary.rotated <= rotary.heads &&
              x.count() == x.dim(0) * rotary.units * rotary.heads * rotary.width,
          "x {} does not have rows of {} units of {} heads of even width {}", to_string(x.shape()), rotary.units,
          rotary.heads, rotary.width);
  const Kernel kernel(queue, "rotation", x, x);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->rotate(x, rotary, tokens, back, queue);
  const std::int64_t row_size = rotary.units * rotary.heads * rotary.width, half = rotary.width / 2;
  const Turns turns(rotary, tokens.end(), back);
  visit_floating(x.dtype(), [&]<class T>(Type<T>) {
    T* values = x.values<T>().data();
    parallel_for(queue.threads, x.dim(0), [&](std::int64_t first, std::int64_t last) {
      std::vector<Statistic<T>> cosines(static_cast<std::size_t>(half)), sines(cosines);
      for (std::int64_t row = first; row < last; ++row) {
        turns.of(tokens.position(row), cosines.data(), sines.data());
        rotate_row(values + row * row_size, rotary, cosines.data(), sines.data());
      }
    });
  });
}

}  // namespace chorale
