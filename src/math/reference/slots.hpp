// The functions of slots.hpp, one element at a time. An element of `places` is −1 for a dropped choice.
#pragma once
#include <cstdint>

namespace chorale::reference {

struct SlotSizes {
  std::int64_t tokens, k, width;
};

template <class T>
void take_rows(const SlotSizes& n, const T* x, const T* weights, const std::int32_t* places, T* rows) {
  for (std::int64_t i = 0; i < n.tokens * n.k; ++i)
    for (std::int64_t column = 0; column < n.width; ++column)
      if (places[i] >= 0) rows[places[i] * n.width + column] = (weights ? weights[i] : 1) * x[i / n.k * n.width + column];
}

template <class T>
void put_slots(const SlotSizes& n, const T* rows, const std::int32_t* places, T* slots) {
  for (std::int64_t i = 0; i < n.tokens * n.k; ++i)
    for (std::int64_t column = 0; column < n.width; ++column)
      slots[i * n.width + column] = places[i] < 0 ? 0 : rows[places[i] * n.width + column];
}

template <class T>
void add_slots(const SlotSizes& n, const T* slots, const T* weights, const T* added, T* y) {
  for (std::int64_t t = 0; t < n.tokens; ++t)
    for (std::int64_t column = 0; column < n.width; ++column) {
      T sum = 0;
      for (std::int64_t i = t * n.k; i < (t + 1) * n.k; ++i) sum += (weights ? weights[i] : 1) * slots[i * n.width + column];
      y[t * n.width + column] = sum + (added ? added[t * n.width + column] : 0);
    }
}

template <class T>
void weight_gradients(const SlotSizes& n, const T* dy, const T* slots, T* dweights) {
  for (std::int64_t i = 0; i < n.tokens * n.k; ++i) {
    dweights[i] = 0;
    for (std::int64_t column = 0; column < n.width; ++column)
      dweights[i] += dy[i / n.k * n.width + column] * slots[i * n.width + column];
  }
}

}  // namespace chorale::reference
