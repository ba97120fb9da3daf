// Helpers for tests of printed text.
#pragma once
#include <string>

#include "tests/catch.hpp"

namespace chorale::test {

// How often `word` stands in `text`.
inline std::size_t times(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + word.size())) ++found;
  return found;
}

// Replaces the first occurrence of `from`, which the text must contain.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  REQUIRE(text.find(from) != std::string::npos);
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace chorale::test
