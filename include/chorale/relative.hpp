// A number that an option takes in two forms: as a value, or as a multiple of the value of another option.
#pragma once

namespace chorale {

// A value, or a multiple of another value: "1e-4" or "0.1*lr".
struct Relative {
  double value = 0;
  bool relative = false;

  constexpr Relative(double number = 0, bool is_relative = false) : value(number), relative(is_relative) {}
  bool operator==(const Relative&) const = default;
  constexpr double of(double whole) const { return relative ? value * whole : value; }
};

}  // namespace chorale
