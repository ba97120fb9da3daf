#include "experiments/plan/wording.hpp"

#include <fmt/format.h>

#include "experiments/common/scale.hpp"

namespace chorale::plan {
namespace {

constexpr int plain_digits = 9;  // programs compute with these values

}  // namespace

std::string Wording::column(const std::string& name, const std::string& unit) const {
  if (!plain_) return name;
  std::string plain;  // "wait: dp" becomes wait_dp
  for (const char c : name + (unit.empty() ? "" : "_" + unit))
    if (c != ':') plain += c == ' ' || c == '-' ? '_' : c;
  return plain;
}

std::string Wording::bytes(std::int64_t bytes) const {
  return !plain_ ? words_for_bytes(static_cast<double>(bytes)) : bytes < 0 ? "" : std::to_string(bytes);
}

std::string Wording::seconds(double seconds, int digits) const { return seconds < 0 ? "" : number(seconds, digits); }

std::string Wording::share(double share) const { return plain_ ? number(share) : fmt::format("{:.1f} %", 100 * share); }

std::string Wording::number(double value, int digits) const {
  return fmt::format("{:.{}g}", value, plain_ ? plain_digits : digits);
}

std::string words_for_bytes(double bytes) { return bytes < 0 ? "?" : quantity(bytes, Unit::bytes); }

std::string words_for_room(double needed, double memory) {
  const double share = needed / memory;
  return fmt::format("a rank needs {} of {}, {:.0f} %{}", words_for_bytes(needed), words_for_bytes(memory), 100 * share,
                     share > tight_share && share <= 1 ? ", so it may fail: libraries and fragmentation come on top" : "");
}

}  // namespace chorale::plan
