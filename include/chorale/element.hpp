// Element types, and the operators that combine elements. The 16-bit floating-point types are storage formats. Kernels widen
// 16-bit values to f32, compute in f32, and round each result once (to nearest, ties to even). `visit` converts a run-time
// DType to a C++ type:
//
//   visit(slice.dtype, [&]<class T>(Type<T>) { sum<T>(…); });
#pragma once
#include <bit>
#include <chorale/named.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace chorale {

enum class DType : std::uint8_t { f32, f64, f16, bf16, i32, i64, u8 };
inline constexpr DType all_dtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};

constexpr auto names_of(DType) { return Names{"type", "f32", "f64", "f16", "bf16", "i32", "i64", "u8"}; }

std::int64_t size_of(DType dtype);
bool is_floating(DType dtype);

// The reduction operators of collectives. min and max propagate a NaN. Integer sums and products wrap around.
enum class Redop : std::uint8_t { sum, prod, min, max, avg };
inline constexpr const char* redop_names[] = {"sum", "prod", "min", "max", "avg"};

// The upper half of an f32: the same exponent range, 8 bits of precision.
struct bf16 {
  std::uint16_t bits = 0;
  bf16() = default;
  constexpr explicit bf16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    const std::uint32_t rounded = word + 0x7fffu + ((word >> 16) & 1u);
    bits = static_cast<std::uint16_t>((is_nan ? word | 0x00400000u : rounded) >> 16);  // a NaN becomes a quiet NaN
  }
  constexpr operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

// IEEE half precision: 5 exponent bits, 11 bits of precision, largest finite value 65504.
struct f16 {
  std::uint16_t bits = 0;
  f16() = default;
  constexpr explicit f16(float value) : bits(narrow(value)) {}
  constexpr operator float() const { return widen(bits); }

  // narrow and widen compute all cases and select one result. Both functions contain no branches, so compilers vectorize
  // loops that call these functions.
  static constexpr std::uint16_t narrow(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = word & 0x7fffffffu;
    const std::uint32_t normal = (magnitude + 0x0fffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
    // Half-precision values below 2^-14 are multiples of 2^-24. A float between 0.5 and 1 is a multiple of 2^-24 too. So
    // adding 0.5 rounds the value to the nearest half-precision value, ties to even.
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    std::uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
    half = magnitude >= 0x477ff000u ? 0x7c00u : half;  // would round to 65536 or more: infinity
    half = magnitude > 0x7f800000u ? 0x7e00u : half;   // NaN
    return static_cast<std::uint16_t>(half | (word >> 16 & 0x8000u));
  }
  static constexpr float widen(std::uint16_t half) {
    const std::uint32_t sign = (half & 0x8000u) << 16, magnitude = half & 0x7fffu;
    const auto subnormal = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f);
    const std::uint32_t normal = (magnitude << 13) + 0x38000000u;
    std::uint32_t word = magnitude < 0x0400u ? subnormal : normal;
    word = magnitude >= 0x7c00u ? 0x7f800000u | magnitude << 13 : word;  // infinity and NaN
    return std::bit_cast<float>(word | sign);
  }
};

template <class T>
struct Type {
  using type = T;
};

template <class F>
decltype(auto) visit(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f(Type<float>{});
    case DType::f64: return f(Type<double>{});
    case DType::f16: return f(Type<f16>{});
    case DType::bf16: return f(Type<bf16>{});
    case DType::i32: return f(Type<std::int32_t>{});
    case DType::i64: return f(Type<std::int64_t>{});
    case DType::u8: return f(Type<std::uint8_t>{});
  }
  __builtin_unreachable();
}

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<f16>() {
  return DType::f16;
}
template <>
constexpr DType dtype_of<bf16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<std::int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<std::uint8_t>() {
  return DType::u8;
}

}  // namespace chorale
