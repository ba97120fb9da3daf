#include "experiments/common/scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "experiments/common/each.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

struct Prefix {
  double times;
  const char* name;
};
constexpr Prefix decimal[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};
constexpr Prefix binary[] = {{0x1p40, "Ti"}, {0x1p30, "Gi"}, {0x1p20, "Mi"}, {0x1p10, "Ki"}, {1, ""}};
constexpr Prefix small[] = {{1, ""}, {1e-3, "m"}, {1e-6, "µ"}, {1e-9, "n"}};

// Rounds to `digits` significant digits, without trailing zeros. Values from 1 to 1e7 have no exponent.
std::string short_number(double value, int digits) {
  const std::string text = fmt::format("{:.{}g}", value, digits);
  return text.find('e') != std::string::npos && std::abs(value) >= 1 && std::abs(value) < 1e7 ? fmt::format("{:.0f}", value)
                                                                                              : text;
}

template <std::size_t N>
std::string with_prefix(double value, int digits, const Prefix (&prefixes)[N], const char* unit) {
  // A value that rounds up to the next prefix gets that prefix.
  const double size = std::abs(value) * (1 + 0.5 * std::pow(10.0, -digits));
  const Prefix* prefix =
      std::find_if(std::begin(prefixes), std::end(prefixes), [&](const Prefix& p) { return size >= p.times; });
  if (prefix == std::end(prefixes)) --prefix;
  const std::string space = *prefix->name || *unit ? " " : "";
  return short_number(value / prefix->times, digits) + space + prefix->name + unit;
}

}  // namespace

std::string quantity(double value, Unit unit, int digits) {
  if (!std::isfinite(value)) return "-";
  switch (unit) {
    case Unit::seconds: return value == 0 ? "0 s" : with_prefix(value, digits, small, "s");
    case Unit::bytes: return with_prefix(value, digits, binary, "B");
    case Unit::bytes_per_second: return with_prefix(value, digits, decimal, "B/s");
    case Unit::per_second: return with_prefix(value, digits, decimal, "/s");
    case Unit::percent: return (std::abs(value) < 5e-6 ? "0" : short_number(100 * value, digits)) + std::string(" %");
    case Unit::plain: break;
  }
  return std::abs(value) >= 1e5 ? with_prefix(value, digits, decimal, "") : short_number(value, digits);
}

Scale::Scale(Spacing spacing, Unit unit, const std::vector<double>& values) : spacing_(spacing), unit_(unit) {
  const bool logarithmic = spacing == Spacing::logarithmic;
  if (logarithmic) {
    low_ = 1;
    high_ = base();
  }
  bool first = true;
  counts_ = unit == Unit::plain;
  for (const double value : values) {
    if (!holds(value)) continue;
    counts_ = counts_ && value == std::floor(value);
    low_ = first ? value : std::min(low_, value);
    high_ = first ? value : std::max(high_, value);
    first = false;
  }
  if (spacing == Spacing::symmetric) {
    double least = std::numeric_limits<double>::infinity();
    for (const double value : values)
      if (holds(value) && value != 0) least = std::min(least, std::abs(value));
    if (std::isfinite(least)) near_ = std::pow(10.0, std::floor(std::log10(least)));
    if (!first) include(0);
  }
  if (first || high_ > low_) return;
  if (logarithmic) {
    low_ /= base();
    high_ *= base();
  } else {
    const double room = low_ == 0 ? 0.5 : std::abs(low_) / 10;
    low_ -= room;
    high_ += room;
  }
}

void Scale::include(double value) {
  low_ = std::min(low_, value);
  high_ = std::max(high_, value);
}

bool Scale::holds(double value) const { return std::isfinite(value) && (spacing_ != Spacing::logarithmic || value > 0); }

double Scale::place(double value) const {
  if (spacing_ == Spacing::linear) return (value - low_) / (high_ - low_);
  if (spacing_ == Spacing::symmetric) return (stretched(value) - stretched(low_)) / (stretched(high_) - stretched(low_));
  return std::log(value / low_) / std::log(high_ / low_);
}

double Scale::stretched(double value) const { return std::copysign(std::log10(1 + std::abs(value) / near_), value); }

// The ticks are zero, and powers of ten on each side of zero that has values.
std::vector<double> Scale::symmetric_ticks(std::size_t most) const {
  const double from = std::log10(near_), sides = (low_ < 0 ? 1 : 0) + (high_ > 0 ? 1 : 0);
  const double to = std::log10(std::max(std::abs(low_), std::abs(high_)));
  const double stride = std::max(1.0, std::ceil((to - from + 1) * sides / static_cast<double>(most)));
  std::vector<double> marks{0};
  for (double power = from; power <= to + 1e-9; power += stride)
    for (const double mark : {std::pow(10.0, power), -std::pow(10.0, power)})
      if (mark >= low_ && mark <= high_) marks.push_back(mark);
  std::sort(marks.begin(), marks.end());
  return marks;
}

std::vector<double> Scale::ticks(std::size_t most) const {
  if (spacing_ == Spacing::symmetric) return symmetric_ticks(most);
  std::vector<double> marks;
  if (spacing_ == Spacing::linear) {
    double whole = 1;  // unit of round values; for bytes a binary prefix, because 5 MiB is round and 5 MB is not
    for (const Prefix& prefix : binary)
      if (unit_ == Unit::bytes && high_ < 1024 * prefix.times) whole = prefix.times;
    double step = round_step((high_ - low_) / whole / static_cast<double>(most));
    if (multiples(whole * step).size() < 3) step = round_step(step / 2.51);  // the next smaller round value
    return multiples(counts_ ? std::max(whole * step, 1.0) : whole * step);
  }
  const double from = std::ceil(std::log(low_) / std::log(base()) - 1e-9),
               to = std::floor(std::log(high_) / std::log(base()) + 1e-9);
  const double stride = std::max(1.0, std::ceil((to - from + 1) / static_cast<double>(most)));
  for (double power = std::ceil(from / stride) * stride; power <= to; power += stride)
    marks.push_back(std::pow(base(), power));
  if (marks.size() >= 3 || base() == 2) return marks;
  marks.clear();  // with fewer than three powers of ten on the axis, 2 and 5 times the powers are marked too
  for (double power = std::floor(from) - 1; power <= to + 1; ++power)
    for (const double times : {1.0, 2.0, 5.0})
      if (const double mark = times * std::pow(10.0, power); mark >= low_ * (1 - 1e-9) && mark <= high_ * (1 + 1e-9))
        marks.push_back(mark);
  return marks.size() >= 3 ? marks : multiples(round_step((high_ - low_) / static_cast<double>(most)));
}

// Returns the multiples of `step` that are on the axis.
std::vector<double> Scale::multiples(double step) const {
  std::vector<double> marks;
  for (double k = std::ceil(low_ / step - 1e-6); k * step <= high_ + 1e-6 * step; ++k)
    marks.push_back(k == 0 ? 0 : k * step);
  return marks;
}

std::vector<std::string> Scale::labels(const std::vector<double>& ticks) const {
  std::vector<std::string> words;
  for (int digits = 3; digits <= 12; ++digits) {
    words = each(ticks, [&](double tick) { return quantity(tick, unit_, digits); });
    if (std::set<std::string>(words.begin(), words.end()).size() == words.size()) break;
  }
  return words;
}

}  // namespace chorale
