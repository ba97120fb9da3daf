// Helpers for tests of kernels that work on rows or elements. The helpers list the types to test, the tolerances relative to
// the reference in double, and sizes that are not multiples of a SIMD vector.
#pragma once
#include <cstring>

#include "src/math/queue.hpp"
#include "tests/catch.hpp"
#include "tests/math/checks.hpp"

namespace chorale {

inline constexpr DType floating_dtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16};
inline constexpr std::int64_t odd_sizes[] = {1, 3, 17, 31, 33, 100};

inline double tolerance(DType dtype) {
  return dtype == DType::f64 ? 1e-13 : dtype == DType::f32 ? 1e-5 : dtype == DType::f16 ? 5e-4 : 4e-3;
}

inline Tensor copy_of(Desk& desk, const Tensor& tensor) {
  const Tensor copy = desk.empty(tensor.shape(), tensor.dtype());
  std::memcpy(copy.slice().data, tensor.slice().data, static_cast<std::size_t>(tensor.bytes()));
  return copy;
}

// Replaces element i.
inline void put(const Tensor& tensor, std::int64_t i, double value) {
  visit(tensor.dtype(), [&]<class T>(Type<T>) {
    if constexpr (sizeof(T) == 2)
      tensor.values<T>()[static_cast<std::size_t>(i)] = static_cast<T>(static_cast<float>(value));
    else
      tensor.values<T>()[static_cast<std::size_t>(i)] = static_cast<T>(value);
  });
}

// The name of a benchmark. The name includes the number of bytes that the kernel reads and writes.
inline std::string moving(const char* kernel, const Tensor& x, std::int64_t bytes) {
  return std::string(kernel) + " " + name_of(x.dtype()) + " " + to_string(x.shape()) + ", " + std::to_string(bytes / 1000) +
         " kB";
}

}  // namespace chorale
