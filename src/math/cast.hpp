// Converts flat vectors between floating-point types, and adds flat vectors. A conversion rounds each element once, to
// nearest even. Conversion and addition are memory-bound.
#pragma once
#include <bit>
#include <concepts>

#include "src/math/queue.hpp"

namespace chorale {

void cast(const Slice& from, const Slice& to, const Queue& queue);
void add(const Slice& from, const Slice& to, const Queue& queue);  // to += from; both slices have the same type

// Converts f64 to f32 with rounding to odd: the last bit records whether any nonzero lower bits were discarded. Rounding the
// result to 16 bits then gives the correctly rounded value. If both steps rounded to nearest, the result could be the
// neighboring value.
constexpr float to_odd(double value) {
  const auto near = static_cast<float>(value);
  const auto bits = std::bit_cast<std::uint32_t>(near);
  const bool grows = (near < value) == !(value < 0), turns = near != value && bits % 2 == 0;
  return std::bit_cast<float>(turns ? (grows ? bits + 1 : bits - 1) : bits);
}

template <class From, class To>
To converted(From value) {
  if constexpr (std::same_as<From, double> && sizeof(To) == 2)
    return static_cast<To>(to_odd(value));
  else if constexpr (sizeof(From) == 2)
    return static_cast<To>(static_cast<float>(value));
  else
    return static_cast<To>(value);
}

// Converts a range. The pragma ivdep tells GCC that the two ranges do not overlap.
template <class From, class To>
void convert(const From* from, To* to, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) to[i] = converted<From, To>(from[i]);
}

}  // namespace chorale
