// GPT-2's byte alphabet, in which tokenizer files write tokens. Printable bytes stand for themselves; all other bytes
// become code points from 256 on (a space is Ġ). So every token is a readable word.
#pragma once
#include <optional>
#include <string>

namespace chorale {

std::string readable(const std::string& bytes);
std::optional<std::string> bytes_of_word(const std::string& word);  // nothing if a character is not in the alphabet

}  // namespace chorale
