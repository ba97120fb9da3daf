// Helpers for tests of exact numerics. The helpers partition matrices in the same way as ranks do, and add integer sums.
#pragma once
#include <cstring>
#include <vector>

#include "src/math/numerics.hpp"
#include "tests/math/checks.hpp"

namespace chorale {

inline Tensor columns_of(Desk& desk, const Tensor& whole, std::int64_t first, std::int64_t length) {
  const Tensor part = desk.empty({whole.dim(0), length}, whole.dtype());
  const std::int64_t size = size_of(whole.dtype()), width = whole.dim(1);
  for (std::int64_t row = 0; row < whole.dim(0); ++row)
    std::memcpy(static_cast<char*>(part.slice().data) + row * length * size,
                static_cast<const char*>(whole.slice().data) + (row * width + first) * size,
                static_cast<std::size_t>(length * size));
  return part;
}

inline Tensor transposed(Desk& desk, const Tensor& matrix) {
  const Tensor turned = desk.empty({matrix.dim(1), matrix.dim(0)}, matrix.dtype());
  for (std::int64_t i = 0; i < matrix.dim(0); ++i)
    for (std::int64_t j = 0; j < matrix.dim(1); ++j)
      turned.values<float>()[static_cast<std::size_t>(j * matrix.dim(0) + i)] =
          matrix.values<float>()[static_cast<std::size_t>(i * matrix.dim(1) + j)];
  return turned;
}

inline Tensor zeros(Desk& desk, Shape shape) { return desk.filled(std::move(shape), DType::i64, 0); }

// Computes total += part, as an all-reduce does.
inline void add(const Tensor& total, const Tensor& part) {
  const auto to = total.values<std::int64_t>(), from = part.values<std::int64_t>();
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

}  // namespace chorale
