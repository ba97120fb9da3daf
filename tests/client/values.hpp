// The input values of the calls in random_calls.cpp, and their expected results. An input element is a hash of call, rank
// and index, so any rank can compute the input of every rank. Integers take all values of their type, because sums wrap
// around. Floating-point values are small integers, so every partial sum and product is exact. Inputs of min and max also
// contain NaN, infinities and zeros of both signs.
#pragma once
#include <chorale/chorale.hpp>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>

namespace client {

using namespace chorale;

inline std::uint64_t mixed(std::uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// The type in which 16-bit floats are computed.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
T input_value(std::uint64_t call, int rank, std::int64_t place, Redop op) {
  const std::uint64_t hash = mixed(call + static_cast<std::uint64_t>(rank) * 0x632BE59BD9B4E019u +
                                   static_cast<std::uint64_t>(place) * 0xD1342543DE82EF95u);
  if constexpr (std::integral<T>) return static_cast<T>(hash);
  using W = Wide<T>;
  if (op == Redop::prod) return T(W((hash & 3) == 0 ? 2 : (hash & 3) == 1 ? -1 : 1));
  if (op == Redop::min || op == Redop::max) {
    constexpr W infinite = std::numeric_limits<W>::infinity();
    const W rare[] = {std::numeric_limits<W>::quiet_NaN(), infinite, -infinite, W(0), -W(0), W(0), -W(0), W(1)};
    if (hash % 8 == 0) return T(rare[hash >> 8 & 7]);
  }
  return T(W(static_cast<int>(hash >> 40 & 31) - 15));  // sums over 16 ranks are at most 256, so they are exact in bf16
}

template <class T>
T combined(Redop op, T a, T b) {
  if constexpr (std::integral<T>) {
    using U = std::make_unsigned_t<T>;
    if (op == Redop::min) return std::min(a, b);
    if (op == Redop::max) return std::max(a, b);
    const auto wide_a = static_cast<std::uint64_t>(static_cast<U>(a)),
               wide_b = static_cast<std::uint64_t>(static_cast<U>(b));
    return static_cast<T>(op == Redop::prod ? wide_a * wide_b : wide_a + wide_b);
  } else {
    const auto x = static_cast<Wide<T>>(a), y = static_cast<Wide<T>>(b);
    if (op == Redop::sum || op == Redop::avg) return T(x + y);
    if (op == Redop::prod) return T(x * y);
    if (std::isnan(x) || std::isnan(y)) return T(std::numeric_limits<Wide<T>>::quiet_NaN());
    if (x == y) return std::signbit(x) == (op == Redop::min) ? a : b;  // −0 counts as less than +0
    return (x < y) == (op == Redop::min) ? a : b;
  }
}

// Returns the expected result of a reduction, at index `place` of the full vector.
template <class T>
T reduced_value(std::uint64_t call, int ranks, std::int64_t place, Redop op) {
  T result = input_value<T>(call, 0, place, op);
  for (int rank = 1; rank < ranks; ++rank) result = combined(op, result, input_value<T>(call, rank, place, op));
  if (op != Redop::avg) return result;
  if constexpr (std::integral<T>)
    return static_cast<T>(result / static_cast<T>(ranks));
  else
    return T(static_cast<Wide<T>>(result) / static_cast<Wide<T>>(ranks));
}

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

}  // namespace client
