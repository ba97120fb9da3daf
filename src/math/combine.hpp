// Combines two elements with a reduction operator. The results are bit-identical on the host and on a device. reduction.hpp
// documents the operators.
#pragma once
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "src/math/reduction.hpp"

namespace chorale {

template <class T>
constexpr bool is_small = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;
template <class T>
using Wide = std::conditional_t<is_small<T>, float, T>;  // the type in which elements of type T are reduced

template <class T>  // the type in which T is divided; the divisor (the number of ranks) might not fit in a small integer
                    // type
using Quotient = std::conditional_t<std::is_integral_v<T>, std::int64_t, Wide<T>>;

template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

// Equal floats can differ only in the sign of zero. A bitwise operation then selects the correct zero: for min, −0 | +0 =
// −0; for max, −0 & +0 = +0. The function is branch-free, so that loops over it vectorize.
template <Redop op, class T>
constexpr T extreme(T a, T b) {
  constexpr bool wants_min = op == Redop::min;
  if constexpr (std::is_integral_v<T>) {
    return wants_min ? std::min(a, b) : std::max(a, b);
  } else {
    const auto bits_a = std::bit_cast<Bits<T>>(a), bits_b = std::bit_cast<Bits<T>>(b);
    const T joined = std::bit_cast<T>(wants_min ? bits_a | bits_b : bits_a & bits_b);
    const T picked = (wants_min ? a < b : a > b) ? a : b;
    const T chosen = a == b ? joined : picked;
    return a == a && b == b ? chosen : std::numeric_limits<T>::quiet_NaN();
  }
}

template <Redop op, class T>
constexpr T combine(T a, T b) {
  if constexpr (op == Redop::min || op == Redop::max) {
    return extreme<op>(a, b);
  } else if constexpr (std::is_integral_v<T>) {
    using Unsigned =
        std::conditional_t<sizeof(T) < 4, std::uint32_t, std::make_unsigned_t<T>>;  // unsigned types wrap where int would
                                                                                    // overflow
    const auto x = static_cast<Unsigned>(a), y = static_cast<Unsigned>(b);
    return static_cast<T>(op == Redop::prod ? x * y : x + y);
  } else {
    return op == Redop::prod ? a * b : a + b;
  }
}

template <class F>
void with_op(Redop op, F&& f) {
  switch (op) {
    case Redop::sum:
    case Redop::avg: return f(std::integral_constant<Redop, Redop::sum>{});
    case Redop::prod: return f(std::integral_constant<Redop, Redop::prod>{});
    case Redop::min: return f(std::integral_constant<Redop, Redop::min>{});
    case Redop::max: return f(std::integral_constant<Redop, Redop::max>{});
  }
}

}  // namespace chorale
