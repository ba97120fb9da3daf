// Rounds sizes up to a multiple: of a cache line, a page, a block on disk, the ranks that share a bucket.
#pragma once
#include <concepts>
#include <type_traits>

namespace chorale {

template <std::integral T>
constexpr T round_up(T value, std::type_identity_t<T> multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace chorale
