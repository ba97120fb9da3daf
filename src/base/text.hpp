// Small text functions: formatting for people (bytes, durations), suggestions for misspelled names, and escaping.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chorale {

// Makes control characters visible, so that foreign text cannot control the terminal or break a line.
std::string escape_control(std::string_view text);
std::string escape_xml(std::string_view text);  // safe in an XML element or a double-quoted attribute

std::vector<std::string> split(std::string_view text, char separator);  // "a,b" → {"a", "b"}; "" → {}
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string either(const std::vector<std::string>& parts);  // "a, b or c"
std::string trim(std::string_view text);
std::string on_one_line(std::string_view text);           // "what\n why" → "what; why", for an error inside an error
std::string lower(std::string text);                      // ASCII
std::optional<bool> parse_switch(std::string_view text);  // true for "true", "yes", "on" and "1"; false for "false", "no",
                                                          // "off" and "0"
std::string replace_all(std::string text, char from, char to);

std::string first_columns(std::string_view text, int columns);  // counts code points, so it never splits a multi-byte
                                                                // character

std::string human_bytes(std::int64_t bytes);                     // 1536 → "1.5 KiB"
std::optional<std::int64_t> parse_bytes(std::string_view text);  // "1.5K" or "1.5KiB" → 1536; whole bytes only
std::optional<double> parse_seconds(std::string_view text);      // "90", "90s", "1.5m", "2h"
std::string human_seconds(double seconds);                       // 0.00012 → "120 µs"; 3700 → "1 h 01 min"
double round_step(double least);  // returns the smallest value ≥ `least` that is 1, 2 or 5 times a power of ten

// Returns the candidate with the smallest edit distance, or "" if no candidate is near enough.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);
// Returns the suggestion line of the error for an unknown word: `did you mean "ring"?`, or `otherwise` if no candidate is
// near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates, std::string_view otherwise);

}  // namespace chorale
