#include "src/math/rotation.hpp"

#include <algorithm>
#include <cmath>

#include "tests/catch.hpp"

using namespace chorale;

TEST_CASE("turns: errors against cos, sin and pow are within the header's bounds") {
  double worst = 0;
  for (double angle = 1e-6; angle < 1e7; angle *= 1.00037)
    for (const double a : {angle, std::floor(angle)}) {
      const math::Turn turn = math::turn(a);
      const auto exact = static_cast<long double>(a);
      worst = std::max({worst, static_cast<double>(std::abs(turn.cosine - std::cos(exact))),
                        static_cast<double>(std::abs(turn.sine - std::sin(exact)))});
    }
  CHECK(worst <= 1.8e-16);
  CHECK(worst > 1e-17);  // a smaller error would show that nothing was compared
  CHECK((math::turn(0).cosine == 1 && math::turn(0).sine == 0));

  worst = 0;
  for (const double base : {2.0, 1e4, 5e5, 1e12})
    for (const std::int64_t half : {1, 3, 64, 128})
      for (std::int64_t i = 0; i < half; ++i) {
        const long double exact = std::pow(static_cast<long double>(base), -static_cast<long double>(i) / half);
        worst = std::max(worst, static_cast<double>(std::abs(math::frequency(i, half, std::log2(base)) / exact - 1)));
      }
  CHECK(worst <= 2.4e-15);
  CHECK(math::frequency(0, 64, std::log2(1e4)) == 1);
}

// The source code alone determines the bits of a rotation, so every compiler, including a GPU's, must produce the same bits.
TEST_CASE("turns: a turn has the same bits at compile time and at run time") {
  constexpr math::Turn known = math::turn_of(1000, math::frequency(5, 16, 13.287712379549449));
  const math::Turn here = math::turn_of(std::int64_t{1000}, math::frequency(5, 16, std::log2(1e4)));
  CHECK((here.cosine == known.cosine && here.sine == known.sine));
  CHECK(std::abs(here.cosine - std::cos(1000 * std::pow(1e4, -5.0 / 16))) < 1e-12);
}
