// Classifies characters for tokenizers as letters, numbers, white space or other characters (`mark`). The classes are
// Unicode's \p{L}, \p{N} and \s, as in the published regular expressions (pretokenizer.hpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace chorale {

enum class CharacterKind : std::uint8_t { letter, number, space, mark };

struct Character {
  CharacterKind kind;
  std::size_t bytes;  // length in UTF-8
};

// Returns the character at a position. A byte that is not valid UTF-8 counts as a mark.
Character character_at(std::string_view text, std::size_t place);

}  // namespace chorale
