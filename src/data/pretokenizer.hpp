// Splits a text into pre-tokens ("pieces"). BPE merges never cross the end of a pre-token. A published vocabulary includes a
// regular expression that defines the split. Hand-written scanners implement these expressions:
//
//   gpt2     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//   digits   every number character is a pre-token; the text between numbers is split as by gpt2
//   llama3   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
//            |\s*[\r\n]+|\s+(?!\S)|\s+
//
//   "It's 1984,  said he."     gpt2     It | 's | " 1984" | , | " " | " said" | " he" | .
//                              llama3   It | 's | " " | 198 | 4 | , | " " | " said" | " he" | .
#pragma once
#include <cstdint>
#include <string_view>

namespace chorale {

enum class Cut : std::uint8_t { gpt2, digits, llama3 };

// Iterates over the pre-tokens (pieces) of a text. The concatenation of all pre-tokens is the text.
class Pieces {
 public:
  explicit Pieces(std::string_view text, Cut cut = Cut::gpt2) : rest_(text), cut_(cut) {}
  bool next(std::string_view& piece);  // returns false at the end

 private:
  std::size_t next_length();

  std::string_view rest_;
  Cut cut_;
  std::size_t before_number_ = 0;  // number of bytes to the next number or the end, or 0 if it is unknown
};

}  // namespace chorale
