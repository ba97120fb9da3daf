// Parses a text that consists of one number, and of nothing else.
#pragma once
#include <charconv>
#include <concepts>
#include <cstdlib>
#include <optional>
#include <string>

namespace chorale {

template <std::integral Integer>
std::optional<Integer> parse_integer(const std::string& text) {
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// Accepts every notation of strtod, such as "1e3", "nan" and "inf".
inline std::optional<double> parse_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return text.empty() || *end ? std::nullopt : std::optional(value);
}

}  // namespace chorale
