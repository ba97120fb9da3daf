// Matrix products computed by definition, with loops in memory order. Tests compare all faster versions with them.
#pragma once
#include <cstdint>

namespace chorale::reference {

// y[M,N] = x[M,K]·w (+ bias); w is stored as [K,N], or as [N,K] if transposed.
template <class T>
void product(const T* x, const T* w, bool transposed, const T* bias, T* y, std::int64_t m, std::int64_t k, std::int64_t n) {
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t j = 0; j < n; ++j) y[row * n + j] = bias ? bias[j] : T(0);
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t j = 0; j < n; ++j) y[row * n + j] += x[row * k + i] * (transposed ? w[j * k + i] : w[i * n + j]);
  }
}

// dw[K,N] += xᵀ·dy
template <class T>
void add_outer(const T* x, const T* dy, T* dw, std::int64_t m, std::int64_t k, std::int64_t n) {
  for (std::int64_t row = 0; row < m; ++row)
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t j = 0; j < n; ++j) dw[i * n + j] += x[row * k + i] * dy[row * n + j];
}

}  // namespace chorale::reference
