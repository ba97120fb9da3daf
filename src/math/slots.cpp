#include "src/math/slots.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/math/device_kernels.hpp"
#include "src/math/embedding.hpp"
#include "src/math/kernel.hpp"
#include "src/math/lane_sums.hpp"

namespace chorale {
namespace {

void check_rows(const Tensor& rows, const Tensor& places) {
  require(rows.shape().size() == 2 && places.shape().size() == 2 && places.dtype() == DType::i32,
          "rows of experts and their places must be matrices and the places i32; got rows {} and places {} of {}",
          to_string(rows.shape()), to_string(places.shape()), name_of(places.dtype()));
}

void require_within(const Tensor& rows, const Tensor& places) {
  require(std::ranges::all_of(places.values<std::int32_t>(), [&](std::int32_t place) { return place < rows.dim(0); }),
          "the experts have {} rows, but a token's place is beyond them", rows.dim(0));
}

void check_weights(const Tensor& weights, std::int64_t tokens, const Tensor& slots, std::int64_t width) {
  require(slots.shape().size() == 2 && slots.dim(0) == tokens && weights.shape().size() == 2 && weights.dim(0) == tokens &&
              slots.dim(1) == weights.dim(1) * width && weights.dtype() == statistic_of(slots.dtype()),
          "{} tokens of width {} do not have the slots {} of {} with the weights {} of {}", tokens, width,
          to_string(slots.shape()), name_of(slots.dtype()), to_string(weights.shape()), name_of(weights.dtype()));
}

// Computes y = Σ_j weights[j]·slots[j] + added for one token. Each element of `added` is read before y is written.
template <class T>
void add_up(const T* slots, const Statistic<T>* weights, std::int64_t k, const T* added, T* y, std::int64_t width) {
  constexpr std::int64_t piece = 256;  // columns per block; the sums of a block stay in the L1 cache
  Statistic<T> sums[piece];
  for (std::int64_t from = 0; from < width; from += piece) {
    const std::int64_t count = std::min(piece, width - from);
    std::fill_n(sums, count, Statistic<T>{0});
    for (std::int64_t j = 0; j < k; ++j) {
      const T* slot = slots + j * width + from;
      const Statistic<T> weight = weights ? weights[j] : 1;
      for (std::int64_t i = 0; i < count; ++i) sums[i] = std::fma(weight, static_cast<Statistic<T>>(slot[i]), sums[i]);
    }
    if (added)
      for (std::int64_t i = 0; i < count; ++i) sums[i] += static_cast<Statistic<T>>(added[from + i]);
    for (std::int64_t i = 0; i < count; ++i) y[from + i] = static_cast<T>(sums[i]);
  }
}

template <class T>
Statistic<T> dot(const T* a, const T* b, std::int64_t count) {
  if constexpr (std::same_as<T, double>) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
    return sum;
  } else {
    return lane_sums<1>(count,
                        [&](std::int64_t i) { return std::array{static_cast<float>(a[i]) * static_cast<float>(b[i])}; })[0];
  }
}

}  // namespace

void take_rows(const Tensor& x, const Tensor* weights, const Tensor& places, const Tensor& rows, const Queue& queue) {
  check_rows(rows, places);
  require(x.shape().size() == 2 && x.dim(0) == places.dim(0) && x.dim(1) == rows.dim(1) && x.dtype() == rows.dtype(),
          "rows {} of {} cannot be taken from x {} of {} for the places {}", to_string(rows.shape()), name_of(rows.dtype()),
          to_string(x.shape()), name_of(x.dtype()), to_string(places.shape()));
  require(!weights || (weights->shape() == places.shape() && weights->dtype() == statistic_of(x.dtype())),
          "x of {} needs a weight in {} for each of the places {}", name_of(x.dtype()), name_of(statistic_of(x.dtype())),
          to_string(places.shape()));
  const Kernel kernel(queue, "rows to slots", x, weights, places, rows);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->take_rows(x, weights, places, rows, queue);
  require_within(rows, places);
  const std::int64_t k = places.dim(1), width = x.dim(1), bytes = width * size_of(x.dtype());
  const std::int32_t* place = places.values<std::int32_t>().data();
  // Calls move(token, choice, row) for every choice that is not dropped.
  const auto each_choice = [&](auto move) {
    parallel_for(queue.threads, x.dim(0), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first * k; i < last * k; ++i)
        if (place[i] >= 0) move(i / k, i, std::int64_t{place[i]});
    });
  };
  if (!weights) {
    const auto* from = static_cast<const std::byte*>(x.slice().data);
    auto* to = static_cast<std::byte*>(rows.slice().data);
    return each_choice([&](std::int64_t token, std::int64_t, std::int64_t row) {
      std::memcpy(to + row * bytes, from + token * bytes, static_cast<std::size_t>(bytes));
    });
  }
  visit_floating(x.dtype(), [&]<class T>(Type<T>) {
    const T* from = x.values<T>().data();
    const auto* weight = weights->values<Statistic<T>>().data();
    T* to = rows.values<T>().data();
    each_choice([&](std::int64_t token, std::int64_t choice, std::int64_t row) {
      const T* in = from + token * width;
      T* out = to + row * width;
#pragma GCC ivdep
      for (std::int64_t i = 0; i < width; ++i) out[i] = static_cast<T>(weight[choice] * static_cast<Statistic<T>>(in[i]));
    });
  });
}

void put_slots(const Tensor& rows, const Tensor& places, const Tensor& slots, const Queue& queue) {
  check_rows(rows, places);
  require(slots.shape() == Shape{places.dim(0), places.dim(1) * rows.dim(1)} && slots.dtype() == rows.dtype(),
          "rows {} of {} do not fit into the slots {} of {} for the places {}", to_string(rows.shape()),
          name_of(rows.dtype()), to_string(slots.shape()), name_of(slots.dtype()), to_string(places.shape()));
  const Kernel kernel(queue, "slots to rows", rows, places, slots);
  if (kernel.skips()) return;
  if (!queue.device) require_within(rows, places);
  gather_rows(places.view({places.count()}), rows, 0, slots.view({places.count(), rows.dim(1)}), queue);
}

void add_slots(const Tensor& slots, const Tensor* weights, const Tensor* added, const Tensor& y, const Queue& queue) {
  require(y.shape().size() == 2 && slots.shape().size() == 2 && slots.dim(0) == y.dim(0) && y.dim(1) > 0 &&
              slots.dim(1) % y.dim(1) == 0 && slots.dtype() == y.dtype(),
          "the slots {} of {} do not add up to y {} of {}", to_string(slots.shape()), name_of(slots.dtype()),
          to_string(y.shape()), name_of(y.dtype()));
  if (weights) check_weights(*weights, y.dim(0), slots, y.dim(1));
  require(!added || (added->shape() == y.shape() && added->dtype() == y.dtype()),
          "what is added to y must have its type and its shape {}", to_string(y.shape()));
  const Kernel kernel(queue, "sum of slots", slots, weights, added, y);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->add_slots(slots, weights, added, y, queue);
  const std::int64_t width = y.dim(1), k = slots.dim(1) / width;
  visit_floating(y.dtype(), [&]<class T>(Type<T>) {
    const T *in = slots.values<T>().data(), *around = values_or_null<T>(added);
    const auto* weight = values_or_null<Statistic<T>>(weights);
    T* out = y.values<T>().data();
    parallel_for(queue.threads, y.dim(0), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t t = first; t < last; ++t)
        add_up(in + t * k * width, weight ? weight + t * k : nullptr, k, around ? around + t * width : nullptr,
               out + t * width, width);
    });
  });
}

void weight_gradients(const Tensor& dy, const Tensor& slots, const Tensor& dweights, const Queue& queue) {
  require(dy.shape().size() == 2 && dy.dtype() == slots.dtype(), "dy {} of {} does not match slots of {}",
          to_string(dy.shape()), name_of(dy.dtype()), name_of(slots.dtype()));
  check_weights(dweights, dy.dim(0), slots, dy.dim(1));
  const Kernel kernel(queue, "gradient of weights of experts", dy, slots, dweights);
  if (kernel.skips()) return;
  if (queue.device) return queue.device->weight_gradients(dy, slots, dweights, queue);
  const std::int64_t width = dy.dim(1), k = dweights.dim(1);
  visit_floating(dy.dtype(), [&]<class T>(Type<T>) {
    const T *above = dy.values<T>().data(), *in = slots.values<T>().data();
    auto* out = dweights.values<Statistic<T>>().data();
    parallel_for(queue.threads, dy.dim(0), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first * k; i < last * k; ++i) out[i] = dot(above + i / k * width, in + i * width, width);
    });
  });
}

}  // namespace chorale
