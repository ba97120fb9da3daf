// Gathers rows of a table, and rotates by rotary positions, one element at a time.
#pragma once
#include <cmath>

#include "src/math/embedding.hpp"

namespace chorale::reference {

template <class T>
void gather_rows(const std::int32_t* ids, std::int64_t rows, const T* table, std::int64_t first, std::int64_t length, T* y,
                 std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t j = 0; j < width; ++j) {
      const std::int64_t at = ids[row] - first;
      y[row * width + j] = at >= 0 && at < length ? table[at * width + j] : 0;
    }
}

template <class T>
void rotate(T* x, std::int64_t rows, const Rotary& rotary, const Tokens& tokens, bool back) {
  const std::int64_t half = rotary.width / 2;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t unit = 0; unit < rotary.units; ++unit)
      for (std::int64_t head = 0; head < rotary.rotated; ++head)
        for (std::int64_t i = 0; i < half; ++i) {
          const double frequency = std::pow(rotary.base, -static_cast<double>(i) / static_cast<double>(half));
          const double angle = (back ? -1 : 1) * static_cast<double>(tokens.position(row)) * frequency;
          T* pair = x + ((row * rotary.units + unit) * rotary.heads + head) * rotary.width + i;
          const T a = pair[0], b = pair[half];
          pair[0] = a * static_cast<T>(std::cos(angle)) - b * static_cast<T>(std::sin(angle));
          pair[half] = b * static_cast<T>(std::cos(angle)) + a * static_cast<T>(std::sin(angle));
        }
}

}  // namespace chorale::reference
