// GPT-2's byte alphabet, which tokenizer files use to write tokens. Printable bytes are written as themselves. All other
// bytes are written as code points from 256 on (a space is Ġ). Thus, every token is printable text.
#pragma once
#include <optional>
#include <string>

namespace chorale {

std::string readable(const std::string& bytes);
std::optional<std::string> bytes_of_word(const std::string& word);  // nullopt if a character is not in the alphabet

}  // namespace chorale
