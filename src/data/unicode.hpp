// What a tokenizer must know of a character: a letter, a number, white space, or none of these. The classes are Unicode's: \p{L}, \p{N} and
// \s of the regular expressions that tokenizers are published with.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace chorale {

enum class CharacterKind : std::uint8_t { letter, number, space, mark };

struct Character {
  CharacterKind kind;
  std::size_t bytes;  // of its UTF-8
};

// The character that begins there. A byte that belongs to no UTF-8 is a mark of its own.
Character character_at(std::string_view text, std::size_t place);

}  // namespace chorale
