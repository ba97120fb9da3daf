// The instructions of src/math/cuda/instructions.cuh in plain C++. On the include path, this file precedes the original
// file.
#pragma once
#include <cuda_runtime.h>

#include <cmath>
#include <cstring>
#include <limits>

#include <chorale/element.hpp>
#include "tests/cuda/emulation/block.hpp"

namespace chorale::cuda {

template <class T>
float widen(T value) {
  return static_cast<float>(value);
}
template <class T>
T narrow(float value, Type<T>) {
  return static_cast<T>(value);
}

inline float two_to_the(float x) { return std::exp2(x); }
inline float reciprocal(float x) { return 1 / x; }

inline float greater_or_nan(float a, float b) {
  if (a != a || b != b) return std::numeric_limits<float>::quiet_NaN();
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}

// Returns the data that a lane contributed to an exchange.
template <class Put>
const Put& of_lane(const void* all, int lane) {
  return *reinterpret_cast<const Put*>(static_cast<const std::byte*>(all) + lane * emulation::most_exchanged);
}

template <class T>
float half_of(std::uint32_t pair, int which) {
  T value;
  value.bits = static_cast<std::uint16_t>(pair >> 16 * which);
  return static_cast<float>(value);
}

// Every lane contributes its parts of a and b, and then computes its four elements of d.
template <class T>
void multiply(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t* b, Type<T>) {
  struct Put {
    std::uint32_t a[4], b[2];
  };
  Put put{};
  std::memcpy(put.a, a, sizeof put.a);
  std::memcpy(put.b, b, sizeof put.b);
  const void* all = emulation::exchange(&put, sizeof put);
  const int g = static_cast<int>(emulation::lane() / 4), t = static_cast<int>(emulation::lane() % 4);
  for (int e = 0; e < 4; ++e) {
    const int row = g + e / 2 * 8, column = 2 * t + e % 2;
    for (int k = 0; k < 16; ++k) {
      const int lane_of_k = k % 8 / 2, far = k / 8;
      const float left = half_of<T>(of_lane<Put>(all, row % 8 * 4 + lane_of_k).a[row / 8 + 2 * far], k % 2);
      const float right = half_of<T>(of_lane<Put>(all, column * 4 + lane_of_k).b[far], k % 2);
      d[e] = std::fma(left, right, d[e]);
    }
  }
}

inline void load_matrices(std::uint32_t (&m)[4], const void* row) {
  emulation::require_sixteen(row);
  const void* all = emulation::exchange(&row, sizeof row);
  const int g = static_cast<int>(emulation::lane() / 4), t = static_cast<int>(emulation::lane() % 4);
  for (int i = 0; i < 4; ++i) m[i] = of_lane<const std::uint32_t*>(all, 8 * i + g)[t];
}
inline void load_turned(std::uint32_t (&m)[4], const void* row) {
  emulation::require_sixteen(row);
  const void* all = emulation::exchange(&row, sizeof row);
  const int g = static_cast<int>(emulation::lane() / 4), t = static_cast<int>(emulation::lane() % 4);
  const auto at = [&](int matrix, int r) { return std::uint32_t{of_lane<const std::uint16_t*>(all, 8 * matrix + r)[g]}; };
  for (int i = 0; i < 4; ++i) m[i] = at(i, 2 * t) | at(i, 2 * t + 1) << 16;
}

// The data of a copy arrives immediately, or only at the wait (see block.hpp).
inline void copy_pack_later(void* to, const void* from, bool wanted) {
  emulation::require_sixteen(to);
  emulation::require_sixteen(from);
  emulation::copy_later(to, wanted ? from : nullptr, 16);
}
inline void copy_later(float* to, const float* from, bool wanted) {
  emulation::copy_later(to, wanted ? from : nullptr, sizeof(float));
}
inline void wait_for_copies() { emulation::wait_for_copies(); }

}  // namespace chorale::cuda
