#include "src/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace chorale {

std::string escape_control(std::string_view text) {
  std::string safe;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte < 0x20 || byte == 0x7f)
      safe += fmt::format("\\x{:02x}", byte);
    else if (byte == 0xc2 && next >= 0x80 && next < 0xa0)  // the control characters U+0080 to U+009F in UTF-8
    {
      safe += fmt::format("\\x{:02x}", next);
      ++i;
    } else
      safe += text[i];
  }
  return safe;
}

std::string escape_xml(std::string_view text) {
  std::string safe;
  for (const char c : text)
    safe += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  return safe;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
    if (text.empty()) parts.emplace_back();
  }
  return parts;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string either(const std::vector<std::string>& parts) {
  if (parts.size() < 2) return join(parts, "");
  return join({parts.begin(), parts.end() - 1}, ", ") + " or " + parts.back();
}

std::string trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

std::string on_one_line(std::string_view text) {
  std::vector<std::string> lines = split(text, '\n');
  for (std::string& line : lines) line = trim(line);
  return join(lines, "; ");
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::optional<bool> parse_switch(std::string_view text) {
  for (const char* word : {"true", "yes", "on", "1"})
    if (text == word) return true;
  for (const char* word : {"false", "no", "off", "0"})
    if (text == word) return false;
  return {};
}

std::string replace_all(std::string text, char from, char to) {
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

std::string first_columns(std::string_view text, int columns) {
  std::size_t end = 0;
  for (int column = 0; end < text.size() && column < columns; ++column) do
      ++end;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  return std::string(text.substr(0, end));
}

std::string human_bytes(std::int64_t bytes) {
  if (bytes > -1024 && bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}) {
    if (value > -1023.95 && value < 1023.95) break;  // 1023.95 would print as 1024.0
    value /= 1024;
    unit = next;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

namespace {

// "1.5 KiB" → 1.5 and "KIB"
std::optional<std::pair<double, std::string>> number_and_unit(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + digits, value);
  if (digits == 0 || read.ec != std::errc() || read.ptr != text.data() + digits) return std::nullopt;
  std::string unit = trim(text.substr(digits));
  for (char& c : unit) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return std::pair(value, unit);
}

}  // namespace

// Follows the convention of GNU programs: K and KiB are 1024 bytes, KB is 1000 bytes.
std::optional<std::int64_t> parse_bytes(std::string_view text) {
  const auto parts = number_and_unit(text);
  if (!parts) return std::nullopt;
  auto [value, unit] = *parts;
  if (unit.empty()) unit = "B";
  const std::size_t power = std::string_view("BKMGT").find(unit.front());
  const std::string rest = unit.substr(1);
  const bool known = power <= 4 && (rest.empty() || (power > 0 && (rest == "B" || rest == "IB")));
  value *= std::pow(rest == "B" ? 1000.0 : 1024.0, static_cast<double>(known ? power : 0));
  const double whole = std::round(value);  // for example, 4.1 times 1e9 is 4099999999.9999995
  if (!known || std::abs(value - whole) > 1e-15 * whole || whole >= 0x1p62) return std::nullopt;
  return static_cast<std::int64_t>(whole);
}

std::optional<double> parse_seconds(std::string_view text) {
  const auto parts = number_and_unit(text);
  const std::string units = "SMH";
  if (!parts || parts->second.size() > 1 || units.find(parts->second) == std::string::npos) return std::nullopt;
  return parts->first * std::pow(60.0, static_cast<double>(units.find(parts->second)));
}

double round_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double times : {1.0, 2.0, 5.0})
    if (times * power >= least * (1 - 1e-9)) return times * power;
  return 10 * power;
}

std::string human_seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds > 1e15) return fmt::format("{} s", seconds);
  if (seconds < 0) return "-" + human_seconds(-seconds);
  // A value that would be printed as 1000 is printed in the next unit.
  if (seconds < 999.5e-9) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 999.5e-6) return fmt::format("{:.3g} µs", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

namespace {

// Computes Levenshtein's distance one row at a time: O(|a|·|b|) time, O(|b|) memory.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  // A one-letter word has no neighbors. The neighbors of a word of two or three letters are at distance one.
  const std::size_t farthest = word.size() < 4 ? word.size() / 2 : std::max<std::size_t>(2, word.size() / 3);
  std::size_t best_distance = farthest + 1;
  for (const std::string& candidate : candidates)
    if (const std::size_t distance = edit_distance(word, candidate); distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates, std::string_view otherwise) {
  const std::string near = nearest(word, candidates);
  return near.empty() ? std::string(otherwise) : fmt::format("did you mean \"{}\"?", near);
}

}  // namespace chorale
