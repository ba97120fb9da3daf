// The sums over tokens in a backward pass, and the sums over logits in a softmax, computed by their definitions. dy and x
// are [rows, n].
#pragma once
#include <cmath>
#include <cstdint>

namespace chorale::reference {

// db[n] += Σ over rows of dy
template <class T>
void add_columns(const T* dy, T* db, std::int64_t rows, std::int64_t n) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t j = 0; j < n; ++j) db[j] += dy[row * n + j];
}

// dgain[n] += Σ over rows of dy·(x − mean)·rstd; dshift[n] += Σ dy, unless `dshift` is null. The array `stats` holds mean
// and rstd of each row.
template <class T>
void add_norm_gradients(const T* dy, const T* x, const T* stats, T* dgain, T* dshift, std::int64_t rows, std::int64_t n) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t j = 0; j < n; ++j)
      dgain[j] += dy[row * n + j] * (x[row * n + j] - stats[2 * row]) * stats[2 * row + 1];
  if (dshift) add_columns(dy, dshift, rows, n);
}

// table[ids[row] − first] += dy[row], if that row is among the `length` rows of the table
template <class T>
void add_rows(const std::int32_t* ids, std::int64_t first, const T* dy, T* table, std::int64_t length, std::int64_t rows,
              std::int64_t n) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t place = ids[row] - first;
    if (place < 0 || place >= length) continue;
    for (std::int64_t j = 0; j < n; ++j) table[place * n + j] += dy[row * n + j];
  }
}

// sums[row] = Σ_j exp(logits[row,j] − maxima[row])
template <class T>
void sum_exponentials(const T* logits, const T* maxima, T* sums, std::int64_t rows, std::int64_t n) {
  for (std::int64_t row = 0; row < rows; ++row) {
    sums[row] = 0;
    for (std::int64_t j = 0; j < n; ++j) sums[row] += std::exp(logits[row * n + j] - maxima[row]);
  }
}

}  // namespace chorale::reference
