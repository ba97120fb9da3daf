// An axis of a chart: it maps values to positions, and chooses the round values for its ticks.
//
//   linear        0   20 ms   40 ms   60 ms            steps of 1, 2 or 5 times a power of ten
//   logarithmic   1 KiB   32 KiB   1 MiB   32 MiB      powers of ten; of two for bytes
//   symmetric     -1e-3   -1e-6   0   1e-6   1e-3      logarithmic on both sides of zero, linear next to it
//
// holds() returns false for values that have no position on the axis. Infinities and NaN have no position. On a logarithmic
// axis, zero and negative values have no position either. An axis without values extends from 0 to 1. A logarithmic axis
// without values extends from 1 to its base. An axis with a single value extends beyond this value on both sides.
#pragma once
#include <string>
#include <vector>

namespace chorale {

enum class Unit { plain, seconds, bytes, bytes_per_second, per_second, percent };

// Formats a value with its unit: "12.3 ms", "4 KiB", "1.5 GB/s". `digits`: number of significant digits.
std::string quantity(double value, Unit unit, int digits = 3);

class Scale {
 public:
  enum class Spacing { linear, logarithmic, symmetric };
  Scale(Spacing spacing, Unit unit, const std::vector<double>& values);

  void include(double value);  // extends the axis to this value; bars, for example, begin at zero
  bool holds(double value) const;
  double place(double value) const;                   // the position: 0 at the low end, 1 at the high end
  std::vector<double> ticks(std::size_t most) const;  // about `most` round values
  std::vector<std::string> labels(const std::vector<double>& ticks) const;  // with enough digits to distinguish the ticks

  double low() const { return low_; }
  double high() const { return high_; }

 private:
  double base() const { return unit_ == Unit::bytes ? 2 : 10; }
  double stretched(double value) const;  // for a symmetric axis: maps a value to a number in which positions are linear
  std::vector<double> symmetric_ticks(std::size_t most) const;
  std::vector<double> multiples(double step) const;

  Spacing spacing_;
  Unit unit_;
  double low_ = 0, high_ = 1;
  bool counts_ = false;  // all values are integers, such as steps, so there are no ticks between them
  double near_ = 1;      // for a symmetric axis: a power of ten that is at most the smallest nonzero magnitude
};

}  // namespace chorale
