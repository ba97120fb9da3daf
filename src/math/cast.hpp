// Flat vectors from one floating type to another, each number rounded once, to nearest even; and sums of two. Memory-bound.
#pragma once
#include <bit>
#include <concepts>

#include "src/math/queue.hpp"

namespace chorale {

void cast(const Slice& from, const Slice& to, const Queue& queue);
void add(const Slice& from, const Slice& to, const Queue& queue);  // to += from, of one type

// To 16 bits a double goes through a float whose last bit says whether anything was cut off (rounding to odd): two roundings to nearest
// could end at the wrong neighbour.
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

// A loop of it, of ranges that do not overlap: that is what ivdep says.
template <class From, class To>
void convert(const From* from, To* to, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) to[i] = converted<From, To>(from[i]);
}

}  // namespace chorale
