#include <chorale/element.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/base/error.hpp"
#include "src/base/random.hpp"
#include "tests/catch.hpp"

using namespace chorale;

TEST_CASE("types have names and sizes, and a misspelled name is refused") {
  for (const DType dtype : all_dtypes) CHECK(named<DType>(name_of(dtype)) == dtype);
  CHECK((size_of(DType::f64) == 8 && size_of(DType::bf16) == 2 && size_of(DType::u8) == 1));
  CHECK((is_floating(DType::f16) && !is_floating(DType::i64)));
  CHECK_THROWS_WITH(named<DType>("bf1"), says("did you mean \"bf16\"?"));
}

namespace {

// Finds the nearest 16-bit value by exhaustive search. Ties go to the even bit pattern. The search is slow but obviously
// correct.
template <class T>
std::uint16_t rounded_by_search(float value) {
  static const std::vector<std::pair<double, std::uint16_t>> finite = [] {
    std::vector<std::pair<double, std::uint16_t>> all;
    for (unsigned bits = 0; bits < 0x8000; ++bits) {
      T small;
      small.bits = static_cast<std::uint16_t>(bits);
      if (std::isfinite(static_cast<float>(small))) all.emplace_back(static_cast<float>(small), small.bits);
    }
    // Adds one value beyond the largest finite value. Numbers that round to the added value become infinity. The bit pattern
    // of infinity directly follows the bit pattern of the largest finite value.
    all.emplace_back(2 * all.back().first - all[all.size() - 2].first, static_cast<std::uint16_t>(all.back().second + 1));
    return all;
  }();
  const double magnitude = std::min<double>(std::fabs(value), finite.back().first);
  const auto above = std::lower_bound(finite.begin(), finite.end(), std::pair<double, std::uint16_t>{magnitude, 0});
  auto best = above;
  if (above != finite.begin()) {
    const double up = above->first - magnitude, down = magnitude - (above - 1)->first;
    if (down < up || (down == up && (above - 1)->second % 2 == 0)) best = above - 1;
  }
  return static_cast<std::uint16_t>(best->second | (std::signbit(value) ? 0x8000 : 0));
}

template <class T>
void holds_for_all_patterns() {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    T small;
    small.bits = static_cast<std::uint16_t>(bits);
    const float wide = small;
    if (std::isnan(wide))
      REQUIRE(std::isnan(static_cast<float>(T(wide))));
    else
      REQUIRE(T(wide).bits == bits);
  }
}

template <class T>
void rounds_as_the_search_does() {
  const Random random{.seed = 11};
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const float value = std::bit_cast<float>(random.bits(i));
    if (std::isnan(value)) continue;
    INFO(value);
    REQUIRE(T(value).bits == rounded_by_search<T>(value));
  }
  for (unsigned bits = 0; bits + 1 < 0x7c00; bits += 7) {  // exact midpoints
    T low, high;
    low.bits = static_cast<std::uint16_t>(bits);
    high.bits = static_cast<std::uint16_t>(bits + 1);
    const auto halfway = static_cast<float>((static_cast<double>(float(low)) + static_cast<double>(float(high))) / 2);
    REQUIRE(T(halfway).bits == rounded_by_search<T>(halfway));
    REQUIRE(T(std::nextafter(halfway, 0.0f)).bits == low.bits);
    REQUIRE(T(std::nextafter(halfway, std::numeric_limits<float>::infinity())).bits == high.bits);
  }
}

}  // namespace

TEST_CASE("bf16 and f16 represent their values exactly and round others to nearest, ties to even") {
  holds_for_all_patterns<bf16>();
  holds_for_all_patterns<f16>();
  rounds_as_the_search_does<bf16>();
  rounds_as_the_search_does<f16>();
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK((float(f16(infinity)) == infinity && float(bf16(-infinity)) == -infinity));
  CHECK((float(f16(65519.996f)) == 65504 && std::isinf(float(f16(65520.0f)))));
}
