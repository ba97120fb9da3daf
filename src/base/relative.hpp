// A value that is absolute or a multiple of a second value: "1e-4" or "0.1*lr".
#pragma once

namespace chorale {

struct Relative {
  double value = 0;
  bool relative = false;

  constexpr Relative(double value = 0, bool relative = false) : value(value), relative(relative) {}
  bool operator==(const Relative&) const = default;
  constexpr double of(double whole) const { return relative ? value * whole : value; }
};

}  // namespace chorale
